"""Gradients of recurrent layers: products and one native kernel, held to NumPy's."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.engine.graphs import implementations, prepared, run
from tests.graph.backward.differences import graph_of
from tests.processor import PRODUCT
from tightship.engine.cache.bounds import Bounds
from tightship.graph.backward import backward
from tightship.model import Model

GATES = {"LSTM": 4, "GRU": 3, "RNN": 1}
LATE = {"LSTM": "", "GRU": ", linear_before_reset = 1", "RNN": ""}
NUMPY = ("split_recurrent", "split_recurrent_gradient", "native", "onednn")
DIRECTIONS = ("forward", "reverse", "bidirectional")


def gradients(operator, direction, operands, results, sizes=(4, 3, 5, 7), more=""):
    """A layer with the gradients of all it is given; sizes are times, batch, width, hidden."""
    times, batch, width, hidden = sizes
    count, gates = 2 if direction == "bidirectional" else 1, GATES[operator] * hidden
    shapes = {
        "x": (times, batch, width), "w": (count, gates, width), "r": (count, gates, hidden),
        "b": (count, 2 * gates), "h": (count, batch, hidden), "c": (count, batch, hidden),
    }  # fmt: skip
    given = ", ".join(f"float{list(shapes[name])} {name}" for name in operands)
    places = [name if name in operands else "" for name in ("x", "w", "r", "b", "", "h", "c")]
    written = [name if name in results else "" for name in ("y", "l", "k")]
    text = f"""net ({given}) => ({", ".join(f"float {name}" for name in written if name)}) {{
        {", ".join(written).rstrip(", ")} = {operator} <hidden_size = {hidden},
            direction = "{direction}"{more}> ({", ".join(places).rstrip(", ")}) }}"""
    graph = graph_of(text)
    return backward(graph, of=list(graph.outputs), wrt=list(graph.inputs))


def feeds_of(graph):
    numbers = np.random.default_rng(0)
    shapes = {name: graph.value(name).static_shape for name in graph.inputs}
    return {
        name: numbers.normal(0, 0.4, shape).astype(np.float32) for name, shape in shapes.items()
    }


def agrees_with_numpy(graph):
    feeds = feeds_of(graph)
    found, wanted = run(graph, (), feeds), run(graph, NUMPY, feeds)
    for name, array in wanted.items():
        largest = np.abs(array).max() + 1e-3
        np.testing.assert_allclose(found[name], array, rtol=0, atol=1e-5 * largest, err_msg=name)


SIZES = st.sampled_from([(4, 3, 5, 7), (1, 2, 3, 5), (6, 9, 12, 70), (3, 1, 2, 16)])


@settings(max_examples=25, deadline=None)
@given(
    st.sampled_from(DIRECTIONS),
    st.sampled_from(["xwr", "xwrb", "xwrh", "xwrc", "xwrbhc"]),
    st.sampled_from(["y", "l", "k", "yk", "ylk"]),
    SIZES,
)
def test_an_lstm_has_the_gradients_of_numpy(direction, operands, results, sizes):
    agrees_with_numpy(gradients("LSTM", direction, operands, results, sizes))


@settings(max_examples=25, deadline=None)
@given(
    st.sampled_from(DIRECTIONS),
    st.sampled_from(["xwr", "xwrb", "xwrh", "xwrbh"]),
    st.sampled_from(["y", "l", "yl"]),
    SIZES,
    st.booleans(),
)
def test_a_gru_has_the_gradients_of_numpy(direction, operands, results, sizes, is_late):
    more = ", linear_before_reset = 1" if is_late else ""
    agrees_with_numpy(gradients("GRU", direction, operands, results, sizes, more))


@settings(max_examples=25, deadline=None)
@given(
    st.sampled_from(DIRECTIONS),
    st.sampled_from(["xwr", "xwrb", "xwrbh"]),
    st.sampled_from(["y", "l", "yl"]),
    SIZES,
    st.sampled_from(["Tanh", "Relu"]),
)
def test_an_rnn_has_the_gradients_of_numpy(direction, operands, results, sizes, function):
    names = ", ".join([f'"{function}"'] * (2 if direction == "bidirectional" else 1))
    more = f", activations = [{names}]"
    agrees_with_numpy(gradients("RNN", direction, operands, results, sizes, more))


@pytest.mark.parametrize("threads", [2, 3])
@pytest.mark.parametrize("operator", GATES)
def test_the_kernel_gives_the_same_on_more_threads(operator, threads):
    graph = gradients(operator, "forward", "xwrb", "y", (6, 9, 24, 200), LATE[operator])
    feeds = feeds_of(graph)
    found = []
    for count in (1, threads):
        with Model(prepared(graph, (), count), Bounds()) as model:
            found.append(model.run(feeds))
    for name, array in found[0].items():
        np.testing.assert_allclose(array, found[1][name], rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("operator", GATES)
def test_both_ways_run_on_native_kernels(operator):
    graph = gradients(operator, "bidirectional", "xwrb", "y", more=LATE[operator])
    kinds = {kind for _, kind, _ in implementations(graph)}
    names = {name for _, _, name in implementations(graph)}
    assert kinds <= {"onednn", "native", PRODUCT}
    assert {"recurrent", "recurrent_gradient", "recurrent_weights"} <= names
