"""Training steps in tiles give the bits of the whole, and hold less at once."""

import numpy as np
import pytest

from tests.cost.test_squeeze import BY_ROWS, results, training
from tests.engine.graphs import graph_of
from tests.processor import needs_avx512
from tests.zoo.arena import LARGE, NOT_A_NUMBER
from tightship.cost.operations import operations_of
from tightship.cost.schedule import schedule_of
from tightship.graph.backward import Adam, Sgd, backward
from tightship.graph.cut import runs_of
from tightship.graph.tiles import in_tiles
from tightship.planner.recompute import NEVER


def operations(graph):
    """Count the operations of all nodes except joins."""
    counts = [operations_of(graph, node) for node in graph.nodes if node.operator != "Concat"]
    return sum(count for count in counts if count != NEVER)


@needs_avx512  # NumPy's BLAS sums in another order for another number of rows
@pytest.mark.parametrize("optimizer", [Sgd(), Sgd(momentum=0.9), Adam()])
@pytest.mark.parametrize("name", ["bert", "gpt2 of many words"])
def test_a_training_step_in_tiles_gives_the_same_bits(name, optimizer):
    graph, feeds = training(name, optimizer)
    cut = in_tiles(graph, 4_000, 1_500)
    wanted = results(graph, feeds, NOT_A_NUMBER, BY_ROWS)
    got = results(cut, feeds, LARGE, BY_ROWS)
    assert len(cut.nodes) > len(graph.nodes)
    assert got.keys() == wanted.keys()
    assert all(np.array_equal(got[key], wanted[key]) for key in wanted)


@pytest.mark.parametrize("name", ["bert", "gpt2 of many words"])
def test_tiles_add_no_operation_but_to_join_them(name):
    graph, _ = training(name, Sgd())
    cut = in_tiles(graph, 4_000, 1_500)
    assert len(cut.nodes) > len(graph.nodes)
    assert operations(cut) == operations(graph)


def test_a_gradient_in_tiles_is_never_whole():
    graph, _ = training("gpt2 of many words", Adam())
    size = max(graph.value(name).size_bytes for name in graph.outputs)
    cut = in_tiles(graph, size, size // 8)
    updates = [node for node in cut.nodes if node.operator == "AdamUpdate"]
    updates = [node for node in updates if "start" in node.attributes]
    written = {name for node in cut.nodes for name in node.writes}
    for rows, tiles in ((400, updates[:8]), (32, updates[8:])):
        assert [node.attributes["start"] for node in tiles] == [rows // 8 * i for i in range(8)]
        assert {cut.value(node.inputs[1]).size_bytes for node in tiles} == {size // 8}
        whole = next(node for node in graph.nodes if node.outputs == tiles[-1].outputs)
        assert whole.inputs[1] not in written
    outside = {value.name for value in schedule_of(cut).schedule.values if value.external}
    assert all(outside.issuperset(node.outputs) for node in updates)


def test_a_graph_of_small_values_is_as_it_was():
    graph, _ = training("bert", Sgd())
    assert in_tiles(graph, 10**9, 10**6) is graph


@pytest.mark.parametrize(
    ("body", "cut"),
    [
        ("a = MatMul(x, w) b = Exp(a) y = MatMul(b, v)", ["MatMul", "Exp", "MatMul"]),
        (
            "a = MatMul(x, w) b = Softmax<axis=2>(a) y = MatMul(b, v)",
            ["MatMul", "Softmax", "MatMul"],
        ),
        ("a = MatMul(x, w) b = Softmax<axis=0>(a) y = MatMul(b, v)", []),
        ("a = MatMul(x, w) y = ReduceSum<keepdims=0>(a)", []),
        ("a = MatMul(x, w) b = Reshape(a, flat) c = Exp(b) y = ReduceMax(c)", []),
        ("a = MatMul(x, w) b = Exp(a) y = Exp(b)", []),
        ("a = MatMul(p, q) y = Equal(a, a)", []),
        ("a = Gemm(p, q) y = Equal(a, a)", ["Gemm", "Equal"]),
        ("a = Gemm(r, s) b = Gemm(p, a) y = Equal(b, b)", ["Gemm", "Equal"]),
    ],
)
def test_only_what_is_apart_along_an_axis_is_cut(body, cut):
    graph = graph_of(
        "net (float[2,4,6] x, float[6,6] p, float[6,50] q, float[6,2] r, float[2,50] s)"
        f" => (y) {{ {body} }}",
        w=np.ones((6, 50), np.float32),
        v=np.ones((50, 2), np.float32),
        flat=np.array([8, 50], np.int64),
    )
    found = sorted(index for run in runs_of(graph, 1_000) for index in run.nodes)
    assert [graph.nodes[index].operator for index in found] == cut


@pytest.mark.parametrize("operator", ["Elu", "Erf", "Gelu", "Tanh"])
def test_the_gradient_of_an_activation_is_cut_as_the_activation_is(operator):
    graph = graph_of(
        "net (float[8,64,2] x, float[8,2,50] w, float[8,50,2] v) => (float y) { a = MatMul(x, w) "
        f"b = {operator}(a) c = MatMul(b, v) d = Mul(c, c) y = ReduceSum<keepdims=0>(d) }}"
    )
    graph = backward(graph, wrt=["x"])
    cut = {graph.nodes[index].operator for run in runs_of(graph, 20_000) for index in run.nodes}
    assert {operator, f"{operator}Grad"} <= cut
