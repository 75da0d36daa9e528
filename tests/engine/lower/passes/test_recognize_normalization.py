import numpy as np
import pytest

from tests.engine.graphs import assert_close, expected, graph_of, node_named, operators, run
from tests.models import filled
from tightship.engine.lower.passes.recognize_normalization import recognize_normalization


def net(body, *, shape=(3, 4, 6), axes=(-1,), affine=(6,), dtype="float", outputs="y"):
    """A function of `t`, which is computed, up to `y`; `g` and `b` have the shape `affine`."""
    number = {"float": np.float32, "double": np.float64}[dtype]
    numbers = {
        "g": filled(*affine).astype(number), "b": filled(*affine, 1)[..., 0].astype(number),
        "eps": np.array(1e-3, number), "two": np.array(2, number), "one": np.array(1, number),
        "ax": np.array(axes, np.int64), "minus": np.array(-0.5, number),
        "other": np.array([0], np.int64), "low": np.array(0.125, number),
    }  # fmt: skip
    declared = ", ".join(
        f"{dtype}[{', '.join(map(str, shape))}] {name}" for name in outputs.split()
    )
    text = f"g ({dtype}[{', '.join(map(str, shape))}] x) => ({declared}) {{ t = Sin (x) {body} }}"
    used = set(text.replace("(", " ").replace(")", " ").replace(",", " ").split())
    return graph_of(text, **{n: v for n, v in numbers.items() if n in used})


CENTRE = "m = ReduceMean (t, ax) d = Sub (t, m)"
VARIANCE = "q = Mul (d, d) v = ReduceMean (q, ax) a = Add (v, eps)"
POWER = "q = Pow (d, two) v = ReduceMean (q, ax) a = Add (eps, v)"
MEAN_SQUARE = "q = Pow (t, two) v = ReduceMean (q, ax) a = Add (v, eps) s = Sqrt (a)"
LAYER = {
    "divided": f"{CENTRE} {POWER} s = Sqrt (a) n = Div (d, s) k = Mul (n, g) y = Add (k, b)",
    "by a reciprocal":
        f"{CENTRE} {VARIANCE} s = Sqrt (a) r = Reciprocal (s) n = Mul (d, r) k = Mul (g, n)"
        " y = Add (b, k)",
    "by one over": f"{CENTRE} {VARIANCE} s = Sqrt (a) r = Div (one, s) n = Mul (r, d) "
                   "k = Mul (n, g) y = Add (k, b)",
    "by a power": f"{CENTRE} {VARIANCE} r = Pow (a, minus) n = Mul (d, r) k = Mul (n, g)"
                  " y = Add (k, b)",
    "centred twice": f"{CENTRE} {VARIANCE} s = Sqrt (a) e = Sub (t, m) n = Div (e, s) "
                     "k = Mul (n, g) y = Add (k, b)",
    "as tf2onnx writes it":
        f"{CENTRE} {VARIANCE} s = Sqrt (a) r = Reciprocal (s) k = Mul (r, g) z = Mul (t, k)"
        " o = Mul (m, k) l = Sub (b, o) y = Add (z, l)",
    "without shift": f"{CENTRE} {POWER} s = Sqrt (a) n = Div (d, s) y = Mul (n, g)",
    "without scale": f"{CENTRE} {POWER} s = Sqrt (a) n = Div (d, s) y = Add (n, b)",
    "bare": f"{CENTRE} {POWER} s = Sqrt (a) y = Div (d, s)",
    "scaled afterwards":
        f"{CENTRE} {POWER} s = Sqrt (a) n = Div (d, s) k = Mul (n, g) y = Mul (k, low)",
}  # fmt: skip
ROOT_MEAN_SQUARE = {
    "by a reciprocal": f"{MEAN_SQUARE} r = Reciprocal (s) n = Mul (t, r) y = Mul (n, g)",
    "by one over": f"{MEAN_SQUARE} r = Div (one, s) n = Mul (t, r) y = Mul (g, n)",
    "divided": f"{MEAN_SQUARE} n = Div (t, s) y = Mul (n, g)",
    "without scale": f"{MEAN_SQUARE} y = Div (t, s)",
    "scale on the deviation": f"{MEAN_SQUARE} r = Reciprocal (s) k = Mul (r, g) y = Mul (t, k)",
}


@pytest.mark.parametrize("body", LAYER.values(), ids=LAYER)
def test_a_pattern_of_layer_normalization_becomes_it(body):
    graph = net(body)
    joined = recognize_normalization(graph)
    assert operators(joined) == ["Sin", "LayerNormalization"]
    assert_close(run(joined), expected(graph))
    assert_close(run(joined, ("onednn",)), expected(graph))


@pytest.mark.parametrize("body", ROOT_MEAN_SQUARE.values(), ids=ROOT_MEAN_SQUARE)
def test_a_pattern_of_root_mean_square_normalization_becomes_it(body):
    graph = net(body)
    joined = recognize_normalization(graph)
    assert operators(joined) == ["Sin", "RMSNormalization"]
    assert_close(run(joined), expected(graph))


@pytest.mark.parametrize("affine", [(4, 6), (1, 4, 6), (6,), (4, 1)])
@pytest.mark.parametrize("axes", [(-2, -1), (1, 2), (2, 1)])
def test_several_last_axes_are_normalized_together(axes, affine):
    graph = net(LAYER["divided"], axes=axes, affine=affine)
    joined = recognize_normalization(graph)
    assert node_named(joined, "LayerNormalization").attributes["axis"] == 1
    assert_close(run(joined), expected(graph))


def test_axes_may_be_an_attribute():
    graph = graph_of(
        """g (float[3, 4] x) => (float[3, 4] y) {
            m = ReduceMean <axes = [1]> (x) d = Sub (x, m) q = Mul (d, d)
            v = ReduceMean <axes = [-1]> (q) a = Add (v, eps) s = Sqrt (a) y = Div (d, s)
        }""",
        header='<ir_version: 8, opset_import: ["": 13]>', eps=np.array(1e-5, np.float32),
    )  # fmt: skip
    joined = recognize_normalization(graph)
    assert operators(joined) == ["LayerNormalization"]
    assert node_named(joined, "LayerNormalization").attributes["epsilon"] == pytest.approx(1e-5)
    assert_close(run(joined), expected(graph))


NEAR_MISSES = {
    "another power": f"{CENTRE} q = Pow (d, one) v = ReduceMean (q, ax) a = Add (v, eps)"
                     " s = Sqrt (a) y = Div (d, s)",
    "another sign": "m = ReduceMean (t, ax) d = Sub (m, t) q = Mul (d, d) v = ReduceMean (q, ax)"
                    " a = Add (v, eps) s = Sqrt (a) y = Add (d, s)",
    "times the deviation": f"{CENTRE} {VARIANCE} s = Sqrt (a) y = Mul (d, s)",
    "a sum of squares": "q = Mul (t, t) v = ReduceSum (q, ax) a = Add (v, eps) s = Sqrt (a)"
                        " y = Div (t, s)",
    "twice the variance": f"{CENTRE} {VARIANCE} w = Mul (a, two) s = Sqrt (w) y = Div (d, s)",
    "the product of two": "q = Mul (t, x) v = ReduceMean (q, ax) a = Add (v, eps) s = Sqrt (a)"
                          " y = Div (t, s)",
    "other operand": f"{MEAN_SQUARE} y = Div (x, s)",
    "mean read elsewhere": f"{CENTRE} {VARIANCE} s = Sqrt (a) n = Div (d, s) k = Mul (n, m)"
                           " y = Add (k, d)",
}  # fmt: skip


@pytest.mark.parametrize("body", NEAR_MISSES.values(), ids=NEAR_MISSES)
def test_another_pattern_stays(body):
    graph = net(body)
    assert operators(recognize_normalization(graph)) == operators(graph)


@pytest.mark.parametrize("changed", [{"axes": (1,)}, {"axes": (0, 2)}, {"dtype": "double"}])
def test_other_axes_and_types_stay(changed):
    graph = net(LAYER["bare"], **changed)
    assert operators(recognize_normalization(graph)) == operators(graph)


def test_a_step_that_is_an_output_too_stays():
    graph = net(LAYER["bare"], outputs="y d")
    joined = recognize_normalization(graph)
    assert "LayerNormalization" not in operators(joined)
    assert_close(run(joined), expected(graph))


def test_a_result_read_before_it_is_scaled_is_scaled_apart():
    graph = net(LAYER["bare"].replace("y = ", "n = ") + " k = Mul (n, g) y = Mul (k, n)")
    assert operators(recognize_normalization(graph)) == ["Sin", "LayerNormalization", "Mul", "Mul"]


def test_a_parameter_for_every_row_is_applied_apart():
    graph = net(LAYER["divided"], affine=(4, 6))
    assert operators(recognize_normalization(graph)) == ["Sin", "LayerNormalization", "Mul", "Add"]
