import numpy as np
import pytest

from tests.engine.graphs import SELECTIONS, assert_close, expected, graph_of, operators, run
from tests.models import filled
from tightship.engine.lower.passes.fuse_residual import fuse_residual
from tightship.graph.operators import rows

BINARY = {name for name, row in rows().items() if row.binary}
SHAPE = "2, 4, 5, 5"


def net(body, head="h = Conv (x, w)", other=SHAPE):
    """`head` of `x`, then `body` with a second input `r`, up to `y`."""
    return graph_of(
        f"g (float[{SHAPE}] x, float[{other}] r) => (float[{SHAPE}] y) {{ {head} {body} }}",
        w=filled(4, 4, 1, 1), k=filled(4, 1, 1) + 3,
    )  # fmt: skip


def inputs(graph):
    """Numbers whose quotients and products stay near one."""
    shapes = {name: graph.value(name).static_shape for name in graph.inputs}
    return {name: filled(*shape, 7)[..., 0] * 0.1 + 1 for name, shape in shapes.items()}


def check(graph, *kept):
    """The graph fused keeps these operators and gives what it gave."""
    fused = fuse_residual(graph)
    assert operators(fused) == list(kept)
    given, wanted = inputs(graph), expected(graph, inputs(graph))
    for without in ((), ("in_place",), ("library_layouts",), SELECTIONS):
        assert_close(run(fused, without, given), wanted)


@pytest.mark.parametrize("operator", sorted(BINARY - {"Sub", "Div"}))
@pytest.mark.parametrize("operands", ["h, r", "r, h"])
def test_an_operation_joins_its_operand_on_either_side(operator, operands):
    check(net(f"y = {operator} ({operands})"), f"Conv+{operator}")


@pytest.mark.parametrize("operator", ["Sub", "Div"])
def test_a_difference_or_quotient_joins_only_its_first_operand(operator):
    check(net(f"y = {operator} (h, r)"), f"Conv+{operator}")
    check(net(f"y = {operator} (r, h)"), "Conv", operator)


@pytest.mark.parametrize("other", ["1", "4, 1, 1", "2, 4, 1, 1", "1, 1, 5, 5", "5", "1, 4, 5, 5"])
def test_an_operand_may_be_broadcast(other):
    check(net("y = Add (h, r)", other=other), "Conv+Add")


@pytest.mark.parametrize("operator", ["Add", "Sub", "Mul", "Div"])
def test_an_operand_may_be_a_constant(operator):
    check(net(f"a = {operator} (h, k) y = Add (a, r)"), f"Conv+{operator}+Add")


def test_an_operation_that_broadcasts_the_result_itself_is_not_fused():
    graph = graph_of(
        "g (float[1, 4, 1, 1] x, float[2, 4, 5, 5] r) => (float[2, 4, 5, 5] y) "
        "{ h = Conv (x, w) y = Add (h, r) }",
        w=filled(4, 4, 1, 1),
    )
    check(graph, "Conv", "Add")


def test_operations_join_one_after_the_other():
    check(net("a = Add (h, r) b = Mul (x, a) y = Sub (b, r)"), "Conv+Add+Mul+Sub")


def test_the_later_of_two_heads_takes_the_sum():
    check(net("i = Conv (r, w) y = Add (h, i)"), "Conv", "Conv+Add")
    check(net("i = Conv (r, w) y = Add (i, h)"), "Conv", "Conv+Add")


def test_an_operand_made_after_the_head_is_not_fused():
    check(net("n = Neg (r) y = Add (h, n)"), "Conv", "Neg", "Add")


def test_an_operand_made_of_the_head_is_not_fused():
    check(net("n = Neg (h) y = Add (h, n)"), "Conv", "Neg", "Add")
    check(net("y = Mul (h, h)"), "Conv", "Mul")


def test_an_operation_on_what_others_read_is_not_fused():
    check(net("a = Add (h, r) y = Mul (a, h)"), "Conv", "Add", "Mul")


@pytest.mark.parametrize("line", ["y = Sum (h, r, x)", "y = Sum (h)", "y = Pow (h, k)"])
def test_what_is_no_operation_of_two_is_not_fused(line):
    check(net(line), "Conv", line.split()[2])


def test_an_operation_on_integers_is_not_fused():
    graph = graph_of("g (int64[2, 2] x, int64[2, 2] r) => (int64[2, 2] y) "
                     "{ h = MatMul (x, r) y = Add (h, r) }")  # fmt: skip
    assert operators(fuse_residual(graph)) == ["MatMul", "Add"]


def test_an_operand_whose_shape_depends_on_data_is_not_fused():
    graph = graph_of(
        """g (float[1, 4, 5, 5] x, bool[4] keep) => (float[1, 4, 5, 5] y) {
            r = Compress <axis = 0> (k, keep) h = Conv (x, w) y = Add (h, r) }""",
        w=filled(4, 4, 1, 1),
        k=filled(4, 1, 1),
    )
    assert graph.value("y").is_static
    assert operators(fuse_residual(graph)) == ["Compress", "Conv", "Add"]


def test_an_axis_of_old_broadcasting_is_not_fused():
    graph = net("y = Add (h, r)")
    graph.nodes[1].attributes["axis"] = 1
    assert operators(fuse_residual(graph)) == ["Conv", "Add"]


def test_a_product_of_matrices_takes_a_residual():
    graph = graph_of(
        "g (float[3, 5] x, float[3, 6] r) => (float[3, 6] y) { h = MatMul (x, w) y = Add (r, h) }",
        w=filled(5, 6),
    )
    check(graph, "MatMul+Add")


def test_nan_is_not_lost_on_the_way():
    graph = net("y = Add (h, r)")
    given = inputs(graph)
    given["r"][1, 2, 3, 4] = np.nan
    found = run(fuse_residual(graph), (), given)["y"]
    assert np.argwhere(np.isnan(found)).tolist() == [[1, 2, 3, 4]]
