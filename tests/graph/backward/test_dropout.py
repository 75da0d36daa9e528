"""Dropouts in training form, and which of them there are."""

import numpy as np
import pytest

from tests.graph.backward.differences import graph_of
from tightship.engine.kernels.gradient.dropout import philox
from tightship.errors import GraphError
from tightship.graph.backward import DROPOUT, backward, with_dropout

OLD = '<ir_version: 10, opset_import: ["": 10]>'


def changed(text, header=None, ratio=None):
    """Operators of a graph with its dropouts in training form, and their attributes."""
    graph = graph_of(text, header) if header else graph_of(text)
    made, _ = with_dropout(graph, ratio)
    return made, [(node.operator, node.attributes.get("ratio")) for node in made.nodes]


@pytest.mark.parametrize(("node", "wanted"), [
    ("Dropout (x)", 0.5),
    ("Dropout (x, r)", 0.25),
    ("Dropout (x, r, on)", 0.25),
    ("Dropout (x, , on)", 0.5),
])  # fmt: skip
def test_a_dropout_drops_by_its_ratio(node, wanted):
    text = (
        f"net (double[4] x) => (double y) <double r = {{0.25}}, bool on = {{1}}> {{ y = {node} }}"
    )
    made, found = changed(text)
    assert found == [("DropoutTraining", wanted)]
    assert made.inputs == ("x", DROPOUT)
    assert changed(text, ratio=0.125)[1] == [("DropoutTraining", 0.125)]


def test_ratios_of_older_models_are_attributes():
    text = "net (double[4] x) => (double y) { y = Dropout <ratio = 0.125> (x) }"
    assert changed(text, OLD)[1] == [("DropoutTraining", 0.125)]


def test_what_says_that_it_does_not_train_stays():
    text = """net (double[4] x) => (double y) <double r = {0.25}, bool on = {0}> {
        y = Dropout (x, r, on)
    }"""
    made, found = changed(text)
    assert found == [("Dropout", None)]
    assert made.inputs == ("x",)


def test_a_ratio_of_nought_drops_nothing():
    made, found = changed("net (double[4] x) => (double y) { y = Dropout (x) }", ratio=0.0)
    assert found == [("Dropout", None)]
    assert made.inputs == ("x",)


@pytest.mark.parametrize("node", ["Dropout (x, r)", "Dropout (x, , on)"])
def test_what_the_model_computes_is_refused(node):
    text = f"net (double[4] x, double r, bool on) => (double y) {{ y = {node} }}"
    with pytest.raises(GraphError, match=r"Dropout `\w+` needs `\w+` to be a constant; `\w+` is"):
        changed(text)


def test_the_state_is_called_otherwise_where_a_value_has_its_name():
    text = "net (double[4] x) => (double[4] y) { dropout = Neg (x) y = Dropout (dropout) }"
    made, state = with_dropout(graph_of(text))
    assert made.inputs == ("x", state)
    assert made.nodes[-1].inputs == (DROPOUT, state)


MASKED = """net (double[4] x, double[4] g) => (double y, double z) <double o = {zero}> {{
    y, m = Dropout (x)
    z = Where (m, g, o)
}}"""


def test_a_mask_that_sets_to_zero_is_drawn_again():
    made, found = changed(MASKED.format(zero="{0}"))
    assert found == [("DropoutTraining", 0.5)] * 2
    first, second = made.nodes
    assert (first.outputs, second.inputs) == (("y",), ("g", DROPOUT))
    assert (first.attributes["scale"], second.attributes["scale"]) == (2.0, 1.0)
    assert first.attributes["stream"] == second.attributes["stream"]


def test_a_mask_that_is_read_otherwise_is_written():
    made, found = changed(MASKED.format(zero="{1}"))
    assert found == [("DropoutTraining", 0.5), ("Where", None)]
    assert made.nodes[0].outputs == ("y", "m")


def test_dropouts_of_a_graph_draw_by_numbers_of_their_own():
    made, _ = changed("net (double[4] x) => (double y) { a = Dropout (x) y = Dropout (a) }")
    assert len({node.attributes["stream"] for node in made.nodes}) == 2


def test_the_gradient_draws_what_the_forward_pass_drew_and_reads_nothing_of_it():
    made, _ = changed("net (double[4] x) => (double y) { y = Dropout (x) }")
    forward, gradient = backward(made, ["y"], ["x"]).nodes
    assert (gradient.operator, gradient.attributes) == (forward.operator, forward.attributes)
    assert gradient.inputs == ("d(y)", DROPOUT)


@pytest.mark.parametrize(("number", "key", "wanted"), [
    (0, (0, 0), (0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8)),
    (2**32 - 1, (2**32 - 1,) * 2, (0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD)),
])  # fmt: skip
def test_numbers_are_those_that_the_authors_of_philox_publish(number, key, wanted):
    found = philox([np.array([number], np.uint64)] * 4, key)
    assert tuple(int(word[0]) for word in found) == wanted
