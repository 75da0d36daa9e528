import math

import numpy as np
import pytest

from tests.engine.graphs import assert_close, expected, graph_of, node_named, operators, run
from tightship.engine.lower.passes.recognize_activation import recognize_activation

NUMBERS = {
    "half": 0.5, "one": 1.0, "two": 2.0, "three": 3.0, "six": 6.0, "zero": 0.0, "sixth": 1 / 6,
    "root2": math.sqrt(2), "root_half": math.sqrt(0.5), "root_pi": math.sqrt(2 / math.pi),
    "cube": 0.044715, "quick": 1.702, "slope": 0.1, "wrong": 0.6,
}  # fmt: skip


def net(body, *, shape="2, 5", dtype="float", rank=0, outputs="y"):
    """A function of `t`, which is computed, up to `y`; its constants have `rank`."""
    number = {"float": np.float32, "float16": np.float16}[dtype]
    used = {n: v for n, v in NUMBERS.items() if n in body}
    weights = {n: np.full((1,) * rank, value, number) for n, value in used.items()}
    declared = ", ".join(f"{dtype}[{shape}] {name}" for name in outputs.split())
    return graph_of(f"g ({dtype}[{shape}] x) => ({declared}) {{ t = Sin (x) {body} }}", **weights)


ERF = "e = Erf (d) p = Add (e, one)"
CUBIC = "c = Pow (t, three) k = Mul (c, cube) s = Add (t, k) m = Mul (s, root_pi) h = Tanh (m)"
GELU = {
    "divided, half last": f"d = Div (t, root2) {ERF} q = Mul (t, p) y = Mul (q, half)",
    "multiplied, half first": f"d = Mul (t, root_half) {ERF} q = Mul (half, t) y = Mul (q, p)",
    "half on the gate": f"d = Div (t, root2) {ERF} q = Mul (p, half) y = Mul (t, q)",
    "half through the sum":
        "d = Div (t, root2) e = Erf (d) a = Mul (half, e) p = Add (half, a) y = Mul (p, t)",
    "halved by a division": f"d = Div (t, root2) {ERF} q = Div (t, two) y = Mul (q, p)",
    "divided at the end": f"d = Mul (root_half, t) {ERF} q = Mul (p, t) y = Div (q, two)",
}  # fmt: skip
TANH_GELU = {
    "power": f"{CUBIC} a = Add (h, one) q = Mul (t, half) y = Mul (q, a)",
    "products": "b = Mul (t, t) c = Mul (b, t) k = Mul (cube, c) s = Add (k, t)"
                " m = Mul (root_pi, s) h = Tanh (m) a = Add (one, h) q = Mul (a, half)"
                " y = Mul (t, q)",
    "factored": "b = Mul (t, t) c = Mul (b, cube) s = Add (one, c) r = Mul (t, root_pi)"
                " m = Mul (r, s) h = Tanh (m) a = Add (h, one) q = Mul (t, a) y = Mul (half, q)",
}  # fmt: skip
SIX = "a = Add (t, three) c = Clip (a, zero, six)"
SPELLINGS = {
    **{f"Gelu, {name}": ("Gelu", body) for name, body in GELU.items()},
    **{f"Gelu by tanh, {name}": ("Gelu", body) for name, body in TANH_GELU.items()},
    "Swish": ("Swish", "s = Sigmoid (t) y = Mul (t, s)"),
    "Swish turned": ("Swish", "s = Sigmoid (t) y = Mul (s, t)"),
    "quick Gelu": ("Swish", "q = Mul (t, quick) s = Sigmoid (q) y = Mul (t, s)"),
    "Mish": ("Mish", "p = Softplus (t) h = Tanh (p) y = Mul (t, h)"),
    "Mish in full":
        ("Mish", "e = Exp (t) a = Add (e, one) l = Log (a) h = Tanh (l) y = Mul (h, t)"),
    "HardSwish by Clip": ("HardSwish", f"{SIX} m = Mul (t, c) y = Div (m, six)"),
    "HardSwish, sixth first": ("HardSwish", f"{SIX} d = Div (c, six) y = Mul (t, d)"),
    "HardSwish by HardSigmoid":
        ("HardSwish", f"h = HardSigmoid <alpha = {1 / 6}> (t) y = Mul (t, h)"),
    "HardSigmoid": ("HardSigmoid", f"{SIX} y = Div (c, six)"),
    "HardSigmoid by a sixth": ("HardSigmoid", f"{SIX} y = Mul (sixth, c)"),
    "HardSigmoid to one":
        ("HardSigmoid", "m = Mul (t, slope) a = Add (m, half) y = Clip (a, zero, one)"),
    "Softplus": ("Softplus", "e = Exp (t) a = Add (one, e) y = Log (a)"),
    "LeakyRelu by Max": ("LeakyRelu", "m = Mul (t, slope) y = Max (t, m)"),
    "LeakyRelu by Where":
        ("LeakyRelu", "m = Mul (slope, t) b = Greater (t, zero) y = Where (b, t, m)"),
}  # fmt: skip


@pytest.mark.parametrize("decomposition", SPELLINGS)
@pytest.mark.parametrize("rank", [0, 1])
def test_a_pattern_of_an_activation_becomes_it(decomposition, rank):
    operator, body = SPELLINGS[decomposition]
    graph = net(body, rank=rank if "Clip" not in body else 0)
    joined = recognize_activation(graph)
    assert operators(joined) == ["Sin", operator]
    assert_close(run(joined), expected(graph))
    assert_close(run(joined, ("onednn",)), expected(graph))


def test_attributes_say_which_of_its_kind_it_is():
    def of(decomposition):
        operator, body = SPELLINGS[decomposition]
        return dict(node_named(recognize_activation(net(body)), operator).attributes)

    assert of("Gelu by tanh, power") == {"approximate": "tanh"}
    assert of("Gelu, divided, half last") == {}
    assert of("quick Gelu") == {"alpha": pytest.approx(1.702)}
    assert of("LeakyRelu by Max") == {"alpha": pytest.approx(0.1)}
    assert of("HardSigmoid") == {"alpha": pytest.approx(1 / 6), "beta": pytest.approx(0.5)}


NEAR_MISSES = {
    "wrong factor": f"d = Div (t, two) {ERF} q = Mul (t, p) y = Mul (q, half)",
    "wrong half": f"d = Div (t, root2) {ERF} q = Mul (t, p) y = Mul (q, wrong)",
    "wrong term":
        "d = Div (t, root2) e = Erf (d) p = Add (e, half) q = Mul (t, p) y = Mul (q, half)",
    "wrong power":
        "c = Pow (t, two) k = Mul (c, cube) s = Add (t, k) m = Mul (s, root_pi) h = Tanh (m)"
        " a = Add (h, one) q = Mul (t, half) y = Mul (q, a)",
    "another operand": f"d = Div (x, root2) {ERF} q = Mul (t, p) y = Mul (q, half)",
    "another gate": "s = Sigmoid (x) y = Mul (t, s)",
    "scaled Swish": "s = Sigmoid (t) q = Mul (t, two) y = Mul (q, s)",
    "shifted Swish": "a = Add (t, one) s = Sigmoid (a) y = Mul (t, s)",
    "read twice": f"d = Div (t, root2) {ERF} q = Mul (t, p) r = Mul (q, half) y = Div (r, p)",
    "square of the gate": "s = Sigmoid (t) r = Mul (s, s) y = Mul (r, t)",
    "wrong clip": "a = Add (t, three) c = Clip (a, zero, three) m = Mul (t, c) y = Div (m, six)",
    "raised clip": "a = Add (t, three) c = Clip (a, one, six) y = Div (c, six)",
    "plain clip": "y = Clip (t, zero, one)",
    "steep Max": "m = Mul (t, two) y = Max (t, m)",
    "turned Where": "m = Mul (slope, t) b = Greater (t, zero) y = Where (b, m, t)",
    "Where above one": "m = Mul (slope, t) b = Greater (t, one) y = Where (b, t, m)",
    "log of two and exp": "e = Exp (t) a = Add (two, e) y = Log (a)",
}  # fmt: skip


@pytest.mark.parametrize("body", NEAR_MISSES.values(), ids=NEAR_MISSES)
def test_another_pattern_stays(body):
    graph = net(body)
    assert operators(recognize_activation(graph)) == operators(graph)


def test_what_is_an_output_on_the_way_stays():
    graph = net("s = Sigmoid (t) y = Mul (t, s)", outputs="y s")
    assert operators(recognize_activation(graph)) == ["Sin", "Sigmoid", "Mul"]


def test_another_dtype_stays():
    graph = net("s = Sigmoid (t) y = Mul (t, s)", dtype="float16")
    assert operators(recognize_activation(graph)) == ["Sin", "Sigmoid", "Mul"]


def test_a_result_of_another_shape_stays():
    graph = graph_of(
        "g (float[3] x) => (float[1, 3] y) { t = Sin (x) m = Mul (t, k) y = Max (t, m) }",
        k=np.full((1, 1), 0.1, np.float32),
    )
    assert operators(recognize_activation(graph)) == ["Sin", "Mul", "Max"]
