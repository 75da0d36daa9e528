import numpy as np
import pytest

from tests.engine.graphs import (
    SELECTIONS,
    assert_close,
    expected,
    graph_of,
    operators,
    run,
)
from tests.models import filled
from tightship.engine.lower.passes.fuse_activation import fuse_activation
from tightship.graph.operators import rows

HEADER = '<ir_version: 11, opset_import: ["": 24]>'
HEADS = {
    "Conv": "h = Conv (x, w)",
    "ConvTranspose": "h = ConvTranspose (x, w)",
    "MatMul": "h = MatMul (x, w)",
    "Gemm": "h = Gemm (x, w, b)",
}


def net(head, body):
    """`head` of the input, then `body` up to `y`."""
    shape, weight = ("4, 4", (4, 4)) if head in ("Gemm", "MatMul") else ("1, 4, 5, 5", (4, 4, 1, 1))
    return graph_of(
        f"g (float[{shape}] x) => (float[{shape}] y) {{ {HEADS[head]} {body} }}", header=HEADER,
        w=filled(*weight), b=filled(4),
        low=np.array(-0.5, np.float32), high=np.array(0.75, np.float32),
    )  # fmt: skip


ACTIVATIONS = {name for name, row in rows().items() if row.eltwise} - {"Neg"} | {"Clip"}
LINES = {
    "Clip": "y = Clip (h, low, high)",
    "LeakyRelu": "y = LeakyRelu <alpha = 0.25> (h)",
    "Elu": "y = Elu <alpha = 0.5> (h)",
    "HardSigmoid": "y = HardSigmoid <alpha = 0.3, beta = 0.4> (h)",
    "Sqrt": "a = Abs (h) y = Sqrt (a)",
}


@pytest.mark.parametrize("head", HEADS)
@pytest.mark.parametrize("operator", sorted(ACTIVATIONS))
def test_an_activation_joins_the_kernel_before_it(head, operator):
    graph = net(head, LINES.get(operator, f"y = {operator} (h)"))
    fused = fuse_activation(graph)
    assert operators(fused) == ["+".join(operators(graph))]
    assert_close(run(fused), expected(graph))


def test_several_activations_join_in_their_order():
    graph = net("Conv", "r = Relu (h) t = Tanh (r) y = Exp (t)")
    fused = fuse_activation(graph)
    assert operators(fused) == ["Conv+Relu+Tanh+Exp"]
    assert_close(run(fused), expected(graph))


@pytest.mark.parametrize("body", ["r = Relu (h) y = Div (r, h)", "r = Relu (h) y = Mul (h, r)"])
def test_an_activation_of_what_others_read_is_not_fused(body):
    assert operators(fuse_activation(net("Conv", body)))[:2] == ["Conv", "Relu"]


def test_an_activation_of_an_output_is_not_fused():
    graph = graph_of("g (float[2, 2] x) => (float[2, 2] y, float[2, 2] h) "
                     "{ h = MatMul (x, w) y = Relu (h) }", w=filled(2, 2))  # fmt: skip
    assert operators(fuse_activation(graph)) == ["MatMul", "Relu"]


@pytest.mark.parametrize("line", ["y = Softmax (h)", "y = Neg (h)", "y = Softplus (h)"])
def test_what_is_no_such_activation_is_not_fused(line):
    assert len(fuse_activation(net("MatMul", line)).nodes) == 2


def test_an_activation_of_anything_but_its_first_operand_is_not_fused():
    graph = graph_of("g (float[3] x) => (float y) { h = MatMul (x, x) y = Clip (low, h) }",
                     low=np.array(1, np.float32))  # fmt: skip
    assert operators(fuse_activation(graph)) == ["MatMul", "Clip"]


def normalized(body, dtype="float"):
    number = np.float32 if dtype == "float" else np.float16
    s, b, m, v = filled(4, 3).astype(number)
    return graph_of(
        f"g ({dtype}[2, 3, 4] x) => ({dtype}[2, 3, 4] y) "
        f"{{ n = BatchNormalization (x, s, b, m, v) {body} }}",
        s=s, b=b, m=m, v=np.abs(v),
    )  # fmt: skip


def test_a_normalization_takes_one_relu_and_nothing_else():
    graph = normalized("r = Relu (n) y = Relu (r)")
    fused = fuse_activation(graph)
    assert operators(fused) == ["BatchNormalization+Relu", "Relu"]
    assert_close(run(fused), expected(graph))
    assert len(fuse_activation(normalized("y = Tanh (n)")).nodes) == 2


def test_what_is_not_float32_is_not_fused():
    assert len(fuse_activation(normalized("y = Relu (n)", "float16")).nodes) == 2


def test_what_is_fused_runs_apart_where_no_kernel_takes_it_along():
    graph = net("Conv", "r = Relu (h) y = Tanh (r)")
    assert_close(run(graph, SELECTIONS), expected(graph))
