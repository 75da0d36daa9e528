"""A template gives the graph that reading and rewriting would have given."""

import functools

import numpy as np
import pytest

from tests.models import parse
from tests.zoo import open_lengths
from tightship.engine.lower.selection import rewritten
from tightship.engine.template import template_of
from tightship.frontend.onnx import open_bytes

MODELS = {
    "text": open_lengths.text,
    "sound": open_lengths.sound,
    "line": open_lengths.line,
    "picture": open_lengths.picture,
    "words": open_lengths.words,
    "speech": open_lengths.speech,
}


@functools.cache
def source(name):
    return open_bytes(MODELS[name]())


def shaped(name, length, batch=1):
    return {
        "text": {"ids": (batch, length)},
        "sound": {"x": (1, 8, length)},
        "line": {"x": (batch, 3, 32, length)},
        "picture": {"x": (batch, 3, 9, length)},
        "words": {"x": (batch, 3, 8, length)},
        "speech": {"x": (1, 8, length)},
    }[name]


@functools.cache
def template(name, length, batch=1):
    opened = source(name)
    return template_of(opened.graph(shaped(name, length, batch)), opened.declared, rewritten)


def assert_same(found, wanted):
    """The same nodes, types and constants."""
    assert found.inputs == wanted.inputs
    assert found.outputs == wanted.outputs
    assert [_comparable(node) for node in found.nodes] == [
        _comparable(node) for node in wanted.nodes
    ]
    for node in wanted.nodes:
        for name in (*node.reads, *node.writes):
            assert found.value(name) == wanted.value(name)
            assert all(type(length) is int for length in found.value(name).shape)
    assert found.constants.keys() == wanted.constants.keys()
    for name, constant in wanted.constants.items():
        np.testing.assert_array_equal(found.constants[name].array(), constant.array(), name)
        assert found.constants[name].shape == constant.shape


def _comparable(node):
    parts = [(part.operator, part.inputs, part.outputs) for part in node.fused]
    return node.name, node.operator, node.inputs, node.outputs, parts


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("length", [13, 17, 24, 40, 47])  # no 128 pixels (`multiply_pixels`)
def test_a_template_gives_what_reading_and_rewriting_give(name, length):
    found = template(name, 29).graph(shaped(name, length))
    assert found is not None
    assert_same(found, rewritten(source(name).graph(shaped(name, length))))


@pytest.mark.parametrize("name", MODELS)
def test_where_it_gives_a_graph_it_is_the_right_one(name):
    held = 0
    for length in (1, 2, 3, 4, 8, 11, 12, 16, 32, 48, 60, 64):
        for batch in (1, 3):
            found = template(name, 29, 3).graph(shaped(name, length, batch))
            if found is not None:
                held += 1
                wanted = rewritten(source(name).graph(shaped(name, length, batch)))
                assert_same(found, wanted)
    assert held


def test_a_length_that_means_something_else_has_no_graph():
    opened = template("text", 29)
    assert opened.graph({"ids": (1, 1)}) is None
    assert opened.graph({"ids": (1, 65)}) is None
    assert opened.graph({"ids": (1, 29, 1)}) is None


def test_weights_are_the_same_constants_for_all_lengths():
    first, second = (template("text", 29).graph({"ids": (1, n)}) for n in (7, 9))
    assert first is not None
    assert second is not None
    large = [n for n, c in first.constants.items() if np.prod(c.shape) > 1000]
    assert len(large) > 8
    assert all(first.constants[name] is second.constants[name] for name in large)


@pytest.mark.parametrize(
    ("scale", "expected"), [(2.0, True), (1.5, False), (0.5, True), (0.3, False)]
)
def test_a_length_is_followed_through_resizing_where_floats_are_exact(scale, expected):
    text = f"""g (float[1, 2, 4, n] x) => (float[1, 2, a, b] y)
        <float[4] s = {{1.0, 1.0, 2.0, {scale}}}> {{ y = Resize (x, , s) }}"""
    opened = open_bytes(parse(text).SerializeToString())
    found = template_of(opened.graph({"x": (1, 2, 4, 8)}), opened.declared, rewritten)
    assert (found is not None) == expected


def test_a_length_is_followed_through_a_transposed_convolution():
    weights = ", ".join(["0.5"] * 18)
    text = f"""g (float[1, 2, n] x) => (float[1, 6, m] y) <float[2, 3, 3] w = {{{weights}}}>
        {{ y = ConvTranspose <strides = [3], dilations = [2], pads = [1, 0], group = 2,
          output_padding = [1]> (x, w) }}"""
    opened = open_bytes(parse(text).SerializeToString())
    found = template_of(opened.graph({"x": (1, 2, 9)}), opened.declared, rewritten)
    assert found is not None
    for length in (2, 7, 30):
        graph = found.graph({"x": (1, 2, length)})
        assert graph is not None
        assert graph.value("y") == opened.graph({"x": (1, 2, length)}).value("y")


def test_an_operator_without_a_rule_has_no_template():
    text = "g (float[n, 4, 4] x) => (float[n] y) { y = Det (x) }"
    opened = open_bytes(parse(text).SerializeToString())
    assert template_of(opened.graph({"x": (3, 4, 4)}), opened.declared, rewritten) is None


def test_an_operator_without_a_rule_is_no_matter_where_lengths_are_fixed():
    text = """g (float[n, 4] x, float[2, 4, 4] z) => (float[n, 4] y, float[2] w) {
        y = Relu (x) w = Det (z) }"""
    opened = open_bytes(parse(text).SerializeToString())
    shapes = {"x": (3, 4), "z": (2, 4, 4)}
    assert template_of(opened.graph(shapes), opened.declared, rewritten) is not None
