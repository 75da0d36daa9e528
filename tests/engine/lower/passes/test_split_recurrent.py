from dataclasses import replace

import numpy as np
import pytest

from tests.engine.graphs import implementations, run
from tests.zoo.net import Net
from tests.zoo.oracle import assert_near, expected
from tightship import _core
from tightship.engine.lower.passes.split_recurrent import split_recurrent
from tightship.frontend.onnx import read_bytes

GATES = {"LSTM": 4, "GRU": 3, "RNN": 1}
STEPS, WIDTH, HIDDEN = 5, 12, 10
DIRECTIONS = ("forward", "reverse", "bidirectional")


def layer(net, operator, *, batch=2, states=(), bias=True, direction="forward", **attributes):
    """Outputs of a layer of the input `x`, with initial states."""
    count, gates = (2 if direction == "bidirectional" else 1), GATES[operator]
    x = net.normal("x", STEPS, batch, WIDTH)
    weights = net.weight(count, gates * HIDDEN, WIDTH), net.weight(count, gates * HIDDEN, HIDDEN)
    shift = net.bias(count, 2 * gates * HIDDEN) if bias else ""
    return net.many(
        operator, 3 if operator == "LSTM" else 2, x, *weights, shift, "", *states,
        hidden_size=HIDDEN, direction=direction, **attributes,
    )  # fmt: skip


def agrees_with_onnx_runtime(net, outputs, operator, kernel="native"):
    net.output(*outputs)
    case = net.case()
    graph = read_bytes(case.model)
    assert {kind for name, kind, _ in implementations(graph) if name == operator} == {kernel}
    assert_near(run(graph, (), case.feeds), expected(case.model, case.feeds))


@pytest.mark.parametrize("direction", DIRECTIONS)
@pytest.mark.parametrize("batch", [1, 3])
@pytest.mark.parametrize("operator", GATES)
def test_the_steps_of_a_layer_are_one_kernel(operator, batch, direction):
    net = Net()
    outputs = layer(net, operator, batch=batch, direction=direction)
    agrees_with_onnx_runtime(net, outputs, operator)


@pytest.mark.parametrize("direction", DIRECTIONS)
def test_a_gru_that_resets_after_the_product_is_another_cell(direction):
    net = Net()
    outputs = layer(net, "GRU", direction=direction, linear_before_reset=1)
    agrees_with_onnx_runtime(net, outputs, "GRU")


@pytest.mark.parametrize("given", [(True, True), (True, False), (False, True)])
def test_initial_states_are_read_one_without_the_other_too(given):
    net = Net()
    states = [net.normal(f"state{i}", 2, 2, HIDDEN) if on else "" for i, on in enumerate(given)]
    outputs = layer(net, "LSTM", states=states, direction="bidirectional")
    agrees_with_onnx_runtime(net, outputs, "LSTM")


@pytest.mark.parametrize("value", [0.0, 0.5])
@pytest.mark.parametrize("operator", ["GRU", "LSTM"])
def test_a_constant_initial_state_counts_unless_it_is_zero(operator, value):
    net = Net()
    state = net.constant(np.full((1, 2, HIDDEN), value, np.float32))
    agrees_with_onnx_runtime(net, layer(net, operator, states=[state]), operator)


@pytest.mark.parametrize("wanted", [[0], [1], [2], [1, 2], [0, 2]])
@pytest.mark.parametrize("direction", ["forward", "bidirectional"])
def test_outputs_may_be_left_out(wanted, direction):
    net = Net()
    outputs = layer(net, "LSTM", direction=direction)
    agrees_with_onnx_runtime(net, [outputs[index] for index in wanted], "LSTM")


@pytest.mark.parametrize("operator", GATES)
def test_a_layer_may_have_no_bias(operator):
    net = Net()
    agrees_with_onnx_runtime(net, layer(net, operator, bias=False), operator)


def test_layers_over_one_another_move_nothing_between_them():
    net = Net()
    sequence, _, _ = layer(net, "LSTM", direction="bidirectional", batch=3)
    both = net("Reshape", net("Transpose", sequence, perm=[0, 2, 1, 3]), net.ints(0, 0, -1))
    weights = net.weight(1, 3 * HIDDEN, 2 * HIDDEN), net.weight(1, 3 * HIDDEN, HIDDEN)
    outputs = net.many("GRU", 2, both, *weights, hidden_size=HIDDEN)
    net.output(outputs[1])
    graph = read_bytes(net.case().model)
    if _core.HAS_ONEDNN:
        steps = ["MatMul", "LSTM", "MatMul", "GRU"]
        assert [name for name, _, _ in implementations(graph)] == steps
    assert_near(run(graph, (), net.feeds), expected(net.case().model, net.feeds))


UNUSUAL = {
    "clipped": {"clip": 0.5},
    "coupled gates": {"input_forget": 1},
    "other activations": {"activations": ["HardSigmoid", "Relu", "Softsign"]},
}


@pytest.mark.parametrize("attributes", UNUSUAL.values(), ids=UNUSUAL)
def test_a_cell_may_be_an_unusual_one(attributes):
    net = Net()
    agrees_with_onnx_runtime(net, layer(net, "LSTM", **attributes), "LSTM")


@pytest.mark.parametrize("position", [4, 7])
def test_a_layer_has_peepholes_and_lengths(position):
    net = Net()
    extra = net.weight(1, 3 * HIDDEN) if position == 7 else ""
    lengths = net.input("lengths", np.array([5, 3], np.int32)) if position == 4 else ""
    weights = net.weight(1, 4 * HIDDEN, WIDTH), net.weight(1, 4 * HIDDEN, HIDDEN)
    inputs = [net.normal("x", STEPS, 2, WIDTH), *weights, "", lengths, "", "", extra]
    outputs = net.many("LSTM", 3, *inputs, hidden_size=HIDDEN)
    agrees_with_onnx_runtime(net, outputs, "LSTM")


def test_an_activation_that_the_kernel_has_not_is_left_to_numpy():
    net = Net()
    outputs = layer(net, "RNN", activations=["Softplus"])
    agrees_with_onnx_runtime(net, outputs, "RNN", "numpy")


@pytest.mark.parametrize("computed", [0, 1, 2])
def test_weights_that_are_computed_are_left_to_numpy(computed):
    net = Net()
    shapes = [(1, HIDDEN, WIDTH), (1, HIDDEN, HIDDEN), (1, 2 * HIDDEN)]
    weights = [net.weight(*shape) for shape in shapes]
    weights[computed] = net.normal("given", *shapes[computed])
    x = net.normal("x", STEPS, 2, WIDTH)
    outputs = net.many("RNN", 2, x, *weights, hidden_size=HIDDEN)
    agrees_with_onnx_runtime(net, outputs, "RNN", "numpy")


@pytest.mark.parametrize("operator", GATES)
def test_a_layer_whose_values_do_not_fit_its_weights_is_no_native_kernel(operator):
    """A kernel would write as many values as the weights say, behind the end of its output."""
    net = Net()
    net.output(*layer(net, operator))
    graph = read_bytes(net.case().model)
    (node,) = (each for each in graph.nodes if each.operator == operator)
    assert operator in {each.operator for each in split_recurrent(graph).nodes if each.domain}
    for name in (*node.inputs[1:4], *node.writes):
        shape = graph.value(name).static_shape
        narrow = replace(graph.value(name), shape=(*shape[:-1], shape[-1] - 1))
        changed = replace(graph, values={**graph.values, name: narrow})
        assert not any(each.domain for each in split_recurrent(changed).nodes), name
