from dataclasses import replace

import pytest

from tests.engine.graphs import lowered
from tests.graph.backward.differences import graph_of
from tightship.engine.plan.ordered_program import arranged, as_given, operations_of
from tightship.engine.plan.step_operations import OPERATIONS_PER_BYTE
from tightship.graph import Node
from tightship.graph.backward import backward
from tightship.planner.recompute import NEVER

HEADER = '<ir_version: 10, opset_import: ["": 22]>'
NUMPY = ("onednn", "native")


def with_gradients(text, wrt):
    """A graph with gradients that only later nodes read, so that they lie in the arena."""
    graph = backward(graph_of(text, HEADER), ["y"], wrt)
    gradients = graph.outputs[1:]
    more = [Node(f"n{name}", "Neg", (name,), (f"n{name}",), version=13) for name in gradients]
    types = {node.name: replace(graph.value(node.inputs[0]), name=node.name) for node in more}
    return replace(
        graph,
        outputs=(*graph.outputs[:1], *types),
        nodes=(*graph.nodes, *more),
        values={**graph.values, **types},
    )


def arithmetic(graph, operator):
    """Operations of an operator's first step beyond those that stand for its bytes."""
    program = lowered(graph, NUMPY)
    index = next(i for i, step in enumerate(program.steps) if step.operator == operator)
    step = program.steps[index]
    moved = sum(operand.size_bytes for operand in (*step.reads, *step.writes))
    return operations_of(program)[index] - OPERATIONS_PER_BYTE * moved


@pytest.mark.parametrize("operator", ["Conv", "ConvGradData", "ConvGradWeights"])
def test_a_convolution_and_its_gradients_take_a_product_for_each_tap(operator):
    graph = with_gradients(
        """net (float[2,4,6,6] x, float[8,2,3,3] w) => (y) {
            c = Conv <group = 2> (x, w)
            y = Relu (c)
        }""",
        ["x", "w"],
    )
    assert arithmetic(graph, operator) == 2 * (2 * 8 * 4 * 4) * (2 * 3 * 3)


@pytest.mark.parametrize(("left", "right"), [("5,7,3", "5,3,4"), ("35,3", "3,20")])
def test_a_product_takes_one_for_each_term(left, right):
    graph = graph_of(
        f"net (float[{left}] a, float[{right}] b) => (y) {{ c = MatMul (a, b) y = Relu (c) }}",
        HEADER,
    )
    terms = 5 * 7 * 3 * 4 if len(left) == 5 else 35 * 3 * 20
    assert arithmetic(graph, "MatMul") == pytest.approx(2 * terms, rel=1e-6)


def test_what_is_random_or_leaves_the_arena_runs_once():
    graph = graph_of(
        "net (float[64] x) => (y) { r = RandomUniformLike (x) s = Mul (r, x) y = Relu (s) }",
        HEADER,
    )
    program = lowered(graph)
    found = dict(zip([s.operator for s in program.steps], operations_of(program), strict=True))
    assert found["RandomUniformLike"] == found["Relu"] == NEVER
    assert found["Mul"] > 0


def test_no_order_takes_more_than_the_one_given():
    graph = with_gradients(
        """net (float[64,8] x, float[8,32] w, float[32,8] v) => (y) {
            a = MatMul (x, w)
            b = Tanh (a)
            y = MatMul (b, v)
        }""",
        ["w", "v"],
    )
    program = lowered(graph)
    given, found = as_given(program), arranged(program, share=1.0)
    assert found.given_bytes == given.placement.arena_bytes
    assert found.placement.arena_bytes <= given.placement.arena_bytes
    assert given.added_share == 0 <= found.added_share <= 1
