import numpy as np

from tests.engine.graphs import operators
from tightship.engine.lower.passes.rewrite import readers_of, rebuilt, sole_reader
from tightship.graph import DType, Graph, Inline, Node, Value

ONE = Inline(np.ones((1, 2), np.float32))


def node(operator, inputs, outputs, **changes):
    name = f"n_{outputs.split()[0]}"
    return Node(name, operator, tuple(inputs.split()), tuple(outputs.split()), **changes)


def graph(*nodes, outputs="y", constants=()):
    return Graph("g", ("x",), tuple(outputs.split()), {}, nodes, dict.fromkeys(constants, ONE))


def test_what_no_output_depends_on_is_dropped_with_its_constants():
    before = graph(
        node("A", "x w", "a"), node("B", "a v", "b"), node("C", "b", "c"), node("D", "a", "y"),
        constants="wvu",
    )  # fmt: skip
    after = rebuilt(before, before.nodes)
    assert operators(after) == ["A", "D"]
    assert set(after.constants) == {"w"}
    assert (after.name, after.inputs, after.outputs) == ("g", ("x",), ("y",))


def test_what_a_body_captures_is_kept():
    body = Graph("body", (), ("o",), {}, (node("F", "a w", "o"),), captures=("a", "w"))
    before = graph(node("A", "x", "a"), node("If", "x", "y", attributes={"b": body}),
                   constants="w")  # fmt: skip
    after = rebuilt(before, before.nodes)
    assert operators(after) == ["A", "If"]
    assert set(after.constants) == {"w"}


def test_an_output_that_is_a_constant_is_kept():
    before = graph(outputs="w x", constants="wv")
    assert set(rebuilt(before, ()).constants) == {"w"}


def test_a_constant_that_is_added_is_typed():
    before = graph(node("A", "x", "y"))
    after = rebuilt(before, (node("A", "x new", "y"),), constants={"new": ONE, "idle": ONE})
    assert after.value("new") == Value("new", DType.FLOAT32, (1, 2))
    assert dict(after.constants) == {"new": ONE}


def test_unread_optional_outputs_are_left_out():
    def outputs(operator, names, kept):
        before = graph(node(operator, "x", names), outputs=kept)
        return rebuilt(before, before.nodes).nodes[0].outputs

    assert outputs("MaxPool", "y i", "y") == ("y",)
    assert outputs("MaxPool", "y i", "y i") == ("y", "i")
    assert outputs("LSTM", "y h c", "y c") == ("y", "", "c")
    assert outputs("LSTM", "y h c", "y h") == ("y", "h")
    assert outputs("Split", "y i", "y") == ("y", "i")


def test_an_unread_first_output_stays():
    before = graph(node("LSTM", "x", "a h"), outputs="h")
    assert rebuilt(before, before.nodes).nodes[0].outputs == ("a", "h")


def test_an_operator_of_another_domain_keeps_its_outputs():
    before = graph(node("MaxPool", "x", "y i", domain="elsewhere"))
    assert rebuilt(before, before.nodes).nodes[0].outputs == ("y", "i")


def test_a_sole_reader_is_the_only_one_and_the_value_no_output():
    made = graph(node("A", "x", "a"), node("B", "a x", "b"), node("C", "b b", "y"),
                 outputs="y b")  # fmt: skip
    counts, readers = made.uses(), readers_of(made)
    assert sole_reader(counts, readers, "a") == made.nodes[1]
    assert sole_reader(counts, readers, "x") is None
    assert sole_reader(counts, readers, "b") is None
    assert sole_reader(counts, readers, "y") is None
    assert sole_reader(counts, readers, "nothing") is None


def test_readers_are_the_last_ones_of_each_name():
    made = graph(node("A", "x", "a"), node("B", "a x", "y"))
    assert {name: reader.operator for name, reader in readers_of(made).items()} == {
        "x": "B", "a": "B"}  # fmt: skip
