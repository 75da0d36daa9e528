import pytest

from tests.engine.graphs import graph_of, operators
from tests.models import filled
from tightship.engine.lower.passes.fuse import Candidate, fuse
from tightship.graph import Graph, Node


def anything(_):
    return True


def node(operator, inputs, outputs):
    return Node(f"n_{outputs.split()[0]}", operator, tuple(inputs.split()),
                tuple(outputs.split()))  # fmt: skip


def graph(*nodes, outputs="y", inputs="x"):
    return Graph("g", tuple(inputs.split()), tuple(outputs.split()), {}, nodes)


def test_a_chain_becomes_one_node_whose_parts_are_in_order():
    made = fuse(graph(node("A", "x", "a"), node("B", "a", "b"), node("C", "b", "y")), anything)
    (only,) = made.nodes
    assert operators(made) == ["A+B+C"]
    assert (only.outputs, only.writes, only.reads) == (("a",), ("y",), ("x",))


def test_a_value_with_a_second_reader_is_where_fusing_ends():
    made = fuse(
        graph(node("A", "x", "a"), node("B", "a", "b"), node("C", "a b", "c"),
              node("D", "c", "y")),
        anything,
    )  # fmt: skip
    assert operators(made) == ["A", "B+C+D"]


def test_a_value_that_is_an_output_is_where_fusing_ends():
    made = fuse(graph(node("A", "x", "a"), node("B", "a", "y"), outputs="y a"), anything)
    assert operators(made) == ["A", "B"]


@pytest.mark.parametrize(
    ("first", "second"), [("a b", "y"), ("a", "y z")], ids=["a head of two", "a follower of two"]
)
def test_a_node_with_two_outputs_is_not_fused(first, second):
    outputs = f"{second} b" if "b" in first else second
    made = fuse(graph(node("A", "x", first), node("B", "a", second), outputs=outputs), anything)
    assert operators(made) == ["A", "B"]


def test_an_optional_output_that_is_absent_does_not_count():
    head = Node("h", "A", ("x",), ("a", ""))
    assert operators(fuse(graph(head, node("B", "a", "y")), anything)) == ["A+B"]


def other_is_there(candidate):
    (other,) = (name for name in candidate.follower.inputs if name != candidate.name)
    return candidate.exists_before_head(other)


def test_a_follower_of_two_heads_joins_the_later():
    nodes = node("A", "x", "a"), node("B", "x", "b"), node("C", "a b", "y")
    assert operators(fuse(graph(*nodes), other_is_there)) == ["A", "B+C"]


def test_what_is_fused_already_takes_more_but_joins_nothing():
    first = fuse(graph(node("A", "x", "a"), node("B", "a", "b"), node("C", "b", "y")),
                 lambda c: c.follower.operator == "C")  # fmt: skip
    assert operators(first) == ["A", "B+C"]
    assert operators(fuse(first, anything)) == ["A", "B+C"]
    more = fuse(graph(node("A", "x", "a"), node("B", "a", "b"), node("C", "b", "y")),
                lambda c: c.follower.operator == "B")  # fmt: skip
    assert operators(fuse(more, anything)) == ["A+B+C"]


def test_only_what_is_accepted_is_fused():
    seen = []
    made = fuse(graph(node("A", "x", "a"), node("B", "a", "y")),
                lambda c: seen.append((c.head.operator, c.follower.operator, c.name)))  # fmt: skip
    assert operators(made) == ["A", "B"]
    assert seen == [("A", "B", "a")]


TYPED = """g (float[2, 3] x, int64[2, 3] i) => (float[2, 3] y, int64[2, n] z) {
    a = MatMul (x, w)
    b = Relu (a)
    y = Add (b, x)
    z = NonZero (x)
}"""


def candidate(head, follower):
    made = graph_of(TYPED, w=filled(3, 3))
    nodes = {node.outputs[0]: node for node in made.nodes}
    born = {name: index for index, name in enumerate(nodes)}
    return Candidate(made, nodes[head], nodes[follower], head, born)


def test_a_candidate_knows_which_values_are_float32_of_known_shape():
    known = candidate("a", "b")
    assert [known.is_float32(name) for name in ("x", "i", "z", "w", "a")] == [
        True, False, False, True, True]  # fmt: skip


def test_a_candidate_knows_what_is_there_before_its_head():
    assert [candidate("b", "y").exists_before_head(n) for n in ("x", "w", "a", "b", "y")] == [
        True, True, True, False, False]  # fmt: skip


def test_a_candidate_knows_whether_the_type_stays():
    assert candidate("a", "b").keeps_shape
    wider = graph_of("g (float[3] x, float[2, 3] r) => (float[2, 3] y) "
                     "{ a = MatMul (x, w) y = Add (a, r) }", w=filled(3, 3))  # fmt: skip
    assert not Candidate(wider, *wider.nodes, "a", {}).keeps_shape
    cast = graph_of("g (float[3] x) => (int64[3] y) { a = MatMul (x, w) y = Cast <to = 7> (a) }",
                    w=filled(3, 3))  # fmt: skip
    assert not Candidate(cast, *cast.nodes, "a", {}).keeps_shape
