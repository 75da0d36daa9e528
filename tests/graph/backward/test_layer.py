import numpy as np
import pytest

from tests.engine.graphs import run as run_planned
from tests.graph.backward.differences import check, numbers
from tightship.cost.schedule import schedule_of
from tightship.errors import GraphError
from tightship.graph import DType, Graph, Layer, Value
from tightship.graph.backward import backward, layer_node
from tightship.planner import place_schedule


def scaled_tanh_forward(inputs, outputs):
    np.tanh(inputs[0], out=outputs[1])
    np.multiply(outputs[1], inputs[1], out=outputs[0])


def scaled_tanh_backward(gradients, reads, input_gradients):
    (dy, _), (scale, tanh), (dx, dscale) = gradients, reads, input_gradients
    if dx is not None:
        np.multiply(dy * scale, 1 - tanh * tanh, out=dx)
    if dscale is not None:
        np.multiply(dy, tanh, out=dscale)


TANH = Layer(scaled_tanh_forward, scaled_tanh_backward, reads_inputs=(1,), reads_outputs=(1,))
"""y, t = tanh(x) scale, tanh(x): the backward reads scale and t."""


def network(layer=TANH, depth=3, dtype=DType.FLOAT64):
    """A chain of layers, each with a scale of its own."""
    names = [*(f"v{i}" for i in range(depth + 1)), *(f"t{i}" for i in range(depth))]
    scales = [f"s{i}" for i in range(depth)]
    values = {name: Value(name, dtype, (2, 5)) for name in (*names, *scales)}
    nodes = [
        layer_node(f"layer{i}", layer, [f"v{i}", f"s{i}"], [f"v{i + 1}", f"t{i}"])
        for i in range(depth)
    ]
    return Graph("net", ("v0", *scales), (f"v{depth}",), values, tuple(nodes))


def test_opaque_layers_have_the_gradients_that_their_backward_gives():
    graph = network()
    check(graph, numbers(graph), graph.inputs)


def test_a_backward_node_names_its_forward_node_and_reads_what_the_layer_says():
    made = backward(network(), wrt=["v0"])
    nodes = made.nodes[3:]
    assert [node.attributes["forward"] for node in nodes] == ["layer2", "layer1", "layer0"]
    assert nodes[0].reads == ("d(v3)", "s2", "t2")
    assert nodes[-1].outputs == ("d(v0)", "")


def test_layers_are_planned_and_run_in_one_arena():
    graph = network(dtype=DType.FLOAT32)
    made = backward(graph, wrt=["v0", "s1"])
    feeds = {**numbers(graph), "d(v3)": np.ones((2, 5), np.float32)}
    found = run_planned(made, inputs=feeds)
    x, state = feeds["v0"], []
    for index in range(3):
        state.append(np.tanh(x))
        x = state[-1] * feeds[f"s{index}"]
    dy = np.ones((2, 5), np.float32)
    for index in (2, 1, 0):
        if index == 1:
            np.testing.assert_allclose(found["d(s1)"], dy * state[1], rtol=1e-5)
        dy = dy * feeds[f"s{index}"] * (1 - state[index] ** 2)
    np.testing.assert_allclose(found["d(v0)"], dy, rtol=1e-5)


def test_what_no_backward_reads_is_free_after_the_forward_pass():
    schedule = schedule_of(backward(network(), wrt=["v0"])).schedule
    readers = {
        schedule.values[value].name: index
        for index, step in enumerate(schedule.steps)
        for value in step.reads
    }
    assert readers["v1"] == 1
    assert readers["t0"] == len(schedule.steps) - 1
    assert place_schedule(schedule).plan.peak_bytes > 0


def test_a_layer_without_a_backward_is_refused():
    with pytest.raises(GraphError, match=r"`layer2`.*no `backward`"):
        backward(network(Layer(scaled_tanh_forward)), wrt=["v0"])
