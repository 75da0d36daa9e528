import numpy as np
import pytest

from tests import models
from tightship.errors import GraphError
from tightship.frontend.onnx import functions, read_bytes
from tightship.graph import Graph

HEADER = '<ir_version: 10, opset_import: ["": 20, "mine": 1]>'
FUNCTION = '<domain: "mine", opset_import: ["": {opset}, "mine": 1]>'


def read(text: str, *bodies: str, opset: int = 20, **weights: models.Array) -> Graph:
    """A model that defines functions of domain `mine`."""
    domain = FUNCTION.format(opset=opset)
    whole = "\n".join([text, *(domain + body for body in bodies)])
    return read_bytes(models.parse(whole, HEADER, **weights).SerializeToString())


def known(graph: Graph, name: str) -> list[float]:
    values: list[float] = graph.known[name].array().tolist()
    return values


ONE = np.array([1, 2, 3], np.int64)
CALL = "g (float[1] unused) => (int64[n] y) { y = mine.F (w) }"


def test_a_call_becomes_the_nodes_of_its_function() -> None:
    graph = read(CALL, "F (a) => (b) { t = Add (a, a) b = Mul (t, a) }", w=ONE)
    assert [node.operator for node in graph.nodes] == ["Add", "Mul"]
    assert known(graph, "y") == [2, 8, 18]


def test_two_calls_do_not_share_names() -> None:
    text = "g (float[1] unused) => (int64[n] y) { u = mine.F (w) y = mine.F (u) }"
    graph = read(text, "F (a) => (b) { t = Add (a, a) b = Neg (t) }", w=ONE)
    assert known(graph, "y") == [4, 8, 12]
    assert len({node.name for node in graph.nodes}) == 4


def test_functions_call_functions() -> None:
    graph = read(
        CALL,
        "F (a) => (b) { t = mine.G (a) b = mine.G (t) }",
        "G (a) => (b) { b = Add (a, a) }",
        w=ONE,
    )
    assert known(graph, "y") == [4, 8, 12]


def test_nodes_have_the_opset_of_their_function() -> None:
    graph = read(CALL, "F (a) => (b) { b = Neg (a) }", opset=13, w=ONE)
    assert graph.nodes[0].version == 13


def test_attributes_are_those_of_the_call_or_the_default() -> None:
    function = "F <axis: int = 0> (a) => (b) { b = Concat <axis: int = @axis> (a, a) }"
    weight = np.array([[1, 2]], np.int64)
    text = "g (float[1] u) => (int64[n, m] y, int64[k, l] z) {{ y = mine.F (w) z = mine.F {} (w) }}"
    graph = read(text.format("<axis = 1>"), function, w=weight)
    assert known(graph, "y") == [[1, 2], [1, 2]]
    assert known(graph, "z") == [[1, 2, 1, 2]]


def test_an_attribute_that_is_not_given_is_absent() -> None:
    function = "F <end> (a) => (b) { b = Shape <end: int = @end> (a) }"
    graph = read("g (float[4, 5] x) => (int64[n] y) { y = mine.F (x) }", function)
    assert known(graph, "y") == [4, 5]


def test_an_absent_input_is_absent_within() -> None:
    function = "F (a, low, high) => (b) { b = Clip (a, low, high) }"
    text = "g (float[1] u) => (int64[n] y) { y = mine.F (w, , high) }"
    graph = read(text, function, w=ONE, high=np.array(2, np.int64))
    assert graph.nodes[0].inputs == ("w", "", "high")
    assert known(graph, "y") == [1, 2, 2]


def test_an_input_that_is_given_back_keeps_both_names() -> None:
    assert known(read(CALL, "F (a) => (a) { }", w=ONE), "y") == [1, 2, 3]


def test_an_output_that_is_not_wanted_is_computed_under_its_own_name() -> None:
    function = "F (a) => (b, c) { b = Neg (a) c = Neg (b) }"
    graph = read("g (float[1] u) => (int64[n] y) { , y = mine.F (w) }", function, w=ONE)
    assert known(graph, "y") == [1, 2, 3]


def test_a_branch_within_a_function_captures_the_names_of_the_call() -> None:
    function = """F (c, a) => (b) {
        t = Neg (a)
        b = If (c) <then_branch = l () => (p) { p = Add (t, a) },
                    else_branch = r () => (q) { q = Sub (t, a) }>
    }"""
    graph = read("g (bool c, float[2] x) => (float[2] y) { y = mine.F (c, x) }", function)
    neg, choice = graph.nodes
    assert choice.reads == ("c", neg.outputs[0], "x")
    assert graph.value("y").shape == (2,)


def test_constants_within_a_function_are_constants_of_the_graph() -> None:
    function = "F (a) => (b) { k = Constant <value_ints = [5]> () b = Add (a, k) }"
    graph = read(CALL, function, w=ONE)
    assert [node.operator for node in graph.nodes] == ["Add"]
    assert known(graph, "y") == [6, 7, 8]


@pytest.mark.parametrize(
    "bodies",
    [
        ["F (a) => (b) { b = mine.F (a) }"],
        ["F (a) => (b) { b = mine.G (a) }", "G (a) => (b) { b = mine.F (a) }"],
        ["F (a) => (b) { b = If (a) <then_branch = l () => (p) { p = mine.F (a) }> }"],
    ],
    ids=["itself", "each other", "in a branch"],
)
def test_a_function_that_calls_itself_is_refused(bodies: list[str]) -> None:
    with pytest.raises(GraphError, match="calls itself"):
        read(CALL, *bodies, w=ONE)


def test_functions_that_multiply_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(functions, "_NODES_MAX", 10_000)
    bodies = [
        f"F{i} (a) => (b) {{ {' '.join(f't{j} = mine.F{i + 1} (a)' for j in range(10))} "
        "b = Neg (a) }"
        for i in range(9)
    ]
    text = "g (float[2] x) => (float[2] y) { y = mine.F0 (x) }"
    with pytest.raises(GraphError, match="more than 10000 nodes"):
        read(text, *bodies, "F9 (a) => (b) { }")


def test_a_function_defined_twice_is_refused() -> None:
    function = "F (a) => (b) { b = Neg (a) }"
    with pytest.raises(GraphError, match="`F` of 'mine' is defined twice"):
        read(CALL, function, function, w=ONE)


def test_a_call_with_too_many_inputs_is_refused() -> None:
    text = "g (float[1] u) => (int64[n] y) { y = mine.F (w, w) }"
    with pytest.raises(GraphError, match=r"has 2 inputs .* takes 1"):
        read(text, "F (a) => (b) { b = Neg (a) }", w=ONE)
