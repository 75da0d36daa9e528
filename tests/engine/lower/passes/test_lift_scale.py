"""Numbers that multiply, or are added, behind the activation of a convolution."""

import numpy as np
import pytest

from tests.engine.graphs import assert_close, expected, graph_of, node_named, operators, run
from tests.models import filled
from tightship.engine.lower.passes.lift_scale import lift_scale
from tightship.engine.lower.pipeline import run_passes

NUMBERS = {
    "half": np.float32(0.5), "two": np.array([2.0], np.float32), "less": np.float32(-3.0),
    "zero": np.float32(0.0), "low": np.float32(-1.0), "high": np.float32(1.5),
    "each": filled(6, 1, 1), "infinite": np.float32(np.inf), "wide": np.ones((1, 1, 1, 1, 1), "f4"),
}  # fmt: skip
CONV = "c = Conv <pads = [1, 1, 1, 1]> (x, w, b)"


def net(body, result="n, c, h, v"):
    weights = {"w": filled(6, 4, 3, 3), "b": filled(6), **NUMBERS}
    named = {name: each for name, each in weights.items() if name in body}
    return graph_of(f"g (float[2, 4, 7, 8] x) => (float[{result}] y) {{ {body} }}", **named)


@pytest.mark.parametrize(
    ("behind", "limits"),
    [
        ("r = Relu (c) y = Mul (r, half)", None),
        ("r = Relu (c) y = Add (less, r)", (-3.0, None)),
        ("r = Relu (c) m = Mul (two, r) y = Add (m, half)", (0.5, None)),
        ("r = Relu (c) a = Add (r, half) m = Mul (a, two) y = Add (m, less)", (-2.0, None)),
        ("r = Clip (c, low, high) m = Mul (r, two) y = Add (m, half)", (-1.5, 3.5)),
        ("r = Clip (c, , high) m = Mul (r, two) y = Add (m, half)", (None, 3.5)),
        ("r = Relu (c) a = Add (r, half) y = Add (a, less)", (-2.5, None)),
        ("r = Relu (c) a = Add (r, less) m = Mul (a, two) y = Add (m, half)", (-5.5, None)),
    ],
)
def test_a_clip_is_left(behind, limits):
    graph = net(CONV + behind)
    passed = run_passes(graph)
    assert operators(passed) == ["Conv+Relu" if limits is None else "Conv+Clip"]
    if limits is not None:
        (clip,) = node_named(passed, "Conv").fused
        found = [passed.constants[name].array() if name else None for name in clip.inputs[1:]]
        assert [each if each is None else float(each) for each in [*found, None][:2]] == list(
            limits
        )
    for without in ((), ("lift_scale",)):
        assert_close(run(graph, without), expected(graph))


def test_a_normalization_may_be_between():
    graph = graph_of(
        "g (float[2, 4, 7, 8] x) => (float[n, c, h, v] y) {"
        "c = Conv (x, w) n = BatchNormalization (c, s, s, s, s) r = Relu (n) y = Add (r, half) }",
        w=filled(6, 4, 3, 3), s=np.abs(filled(6)) + 0.5, half=np.float32(0.5),
    )  # fmt: skip
    assert operators(run_passes(graph)) == ["Conv+Clip"]
    assert_close(run(graph), expected(graph))


@pytest.mark.parametrize(
    "body",
    [
        CONV + "r = Relu (c) y = Mul (r, less)",
        CONV + "r = Relu (c) y = Mul (r, zero)",
        CONV + "r = Relu (c) y = Mul (r, each)",
        CONV + "r = Relu (c) y = Add (r, infinite)",
        CONV + "r = Relu (c) y = Mul (r, r)",
        CONV + "r = Relu (c) m = Mul (r, half) y = Sub (m, r)",
        CONV + "r = Sigmoid (c) y = Mul (r, half)",
        CONV + "r = Relu (c) s = Sin (c) m = Mul (r, half) y = Add (m, s)",
        "k = ReduceMax <keepdims = 0> (x)" + CONV + "r = Clip (c, low, k) y = Mul (r, half)",
        CONV + "r = Clip (c, high, low) y = Mul (r, half)",
        "r = Relu (x) m = Mul (r, half) y = Conv (m, w)",
    ],
)
def test_others_stay(body):
    graph = net(body)
    assert operators(lift_scale(graph)) == operators(graph)
    assert_close(run(graph), expected(graph))


def test_a_number_of_more_axes_stays():
    graph = net(CONV + "r = Relu (c) y = Mul (r, wide)", "a, n, c, h, v")
    assert operators(lift_scale(graph)) == operators(graph)
    assert_close(run(graph), expected(graph))
