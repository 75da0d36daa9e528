"""Steps of recurrent layers in every form, against NumPy kernels that ONNX Runtime agrees with."""

import tracemalloc

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.engine.graphs import REWRITES, prepared
from tests.engine.test_native import run_kernel
from tests.zoo.net import Net
from tightship._core import NativeKernel
from tightship.engine.cache.bounds import Bounds
from tightship.engine.lower.native.recurrent_weights import streamed
from tightship.frontend.onnx import read_bytes
from tightship.model import Model

GATES = {"GRU": 3, "LSTM": 4, "RNN": 1}
ACTIVATIONS = {"GRU": 2, "LSTM": 3, "RNN": 1}
NAMES = (
    "Affine", "Elu", "HardSigmoid", "LeakyRelu", "Relu", "ScaledTanh", "Sigmoid", "Softsign",
    "Tanh", "ThresholdedRelu",
)  # fmt: skip
BY_NUMPY = (*REWRITES, "onednn", "native")


@st.composite
def attributes(draw, operator):
    """Attributes of a layer, those of its own kind and those of every one."""
    direction = draw(st.sampled_from(["forward", "reverse", "bidirectional"]))
    found = {"direction": direction, "layout": draw(st.integers(0, 1))}
    if draw(st.booleans()):
        found["clip"] = 0.4
    if operator != "RNN":
        flag = {"GRU": "linear_before_reset", "LSTM": "input_forget"}[operator]
        found[flag] = draw(st.integers(0, 1))
    if draw(st.booleans()):
        count = ACTIVATIONS[operator] * (2 if direction == "bidirectional" else 1)
        names = st.lists(st.sampled_from(NAMES), min_size=count, max_size=count)
        found |= {"activations": draw(names), "activation_alpha": [0.7] * count,
                  "activation_beta": [0.3] * count}  # fmt: skip
    return found


@st.composite
def layers(draw):
    """A model that is one layer, some of its optional inputs and outputs left out."""
    operator = draw(st.sampled_from(sorted(GATES)))
    given = draw(attributes(operator))
    steps, width = draw(st.integers(1, 5)), draw(st.integers(1, 5))
    batch = draw(st.sampled_from([1, 2, 5, 7, 8, 13]))
    hidden = draw(st.sampled_from([1, 5, 16, 17, 33, 70]))
    ways = 2 if given["direction"] == "bidirectional" else 1
    net = Net(draw(st.integers(0, 99)))
    rows = GATES[operator] * hidden
    by_batch = given["layout"] == 1
    state = (batch, ways, hidden) if by_batch else (ways, batch, hidden)
    x = net.normal("x", *((batch, steps) if by_batch else (steps, batch)), width)
    lengths = net.random.integers(0, steps + 1, batch).astype(np.int32)
    optional = [
        lambda: net.weight(ways, 2 * rows),
        lambda: net.input("lengths", lengths),
        lambda: net.normal("state", *state),
    ]
    if operator == "LSTM":
        optional += [lambda: net.normal("cell", *state), lambda: net.weight(ways, 3 * hidden)]
    inputs = [make() if draw(st.booleans()) else "" for make in optional]
    weights = net.weight(ways, rows, width), net.weight(ways, rows, hidden)
    count = 3 if operator == "LSTM" else 2
    outputs = net.many(operator, count, x, *weights, *inputs, hidden_size=hidden, **given)
    net.output(*draw(st.lists(st.sampled_from(outputs), min_size=1, unique=True)))
    return net.case()


def results(case, threads=1, without=()):
    with Model(prepared(read_bytes(case.model), without, threads), Bounds()) as model:
        if not without:
            assert model.plan.steps[-1].kernel in ("native", "onednn")
            assert "native:recurrent" in {
                f"{s.kernel}:{s.implementation}" for s in model.plan.steps
            }
        first, again = model.run(case.feeds), model.run(case.feeds)
    for name, value in first.items():
        np.testing.assert_array_equal(again[name], value)
    return first


@settings(max_examples=60)
@given(layers(), st.integers(2, 3))
def test_every_form_is_right_and_the_same_on_any_threads(case, threads):
    found, wanted = results(case), results(case, without=BY_NUMPY)
    for name, value in wanted.items():
        np.testing.assert_allclose(found[name], value, rtol=1e-4, atol=1e-5, strict=True)
    for name, value in results(case, threads).items():
        np.testing.assert_array_equal(value, found[name])


def sigmoid(x):
    return 1 / (1 + np.exp(-x.astype(np.float64)))


def by_definition(gates, weights, hidden):
    """States of an LSTM after each step."""
    state, cell = np.zeros((2, gates.shape[1], hidden))
    found = []
    for given_by_input in gates:
        enter, leave, forget, new = np.split(given_by_input + state @ weights.T, 4, axis=1)
        cell = sigmoid(forget) * cell + sigmoid(enter) * np.tanh(new)
        state = sigmoid(leave) * np.tanh(cell)
        found.append(state)
    return np.stack(found)


@pytest.mark.parametrize("threads", [1, 2, 3])
@pytest.mark.parametrize(("batch", "hidden"), [(1, 7), (3, 33), (7, 16), (8, 96), (13, 50)])
def test_a_kernel_stays_within_its_operands(batch, hidden, threads):
    random, steps = np.random.default_rng(1), 4
    gates = random.standard_normal((steps, batch, 4 * hidden), np.float32)
    weights = random.standard_normal((1, 4 * hidden, hidden), np.float32) / 8
    usual = [("sigmoid", 0.0, 0.0), ("tanh", 0.0, 0.0), ("tanh", 0.0, 0.0)]
    rule = NativeKernel.RecurrentRule("lstm", usual, False, False, np.inf)
    strides = ((batch * 4 * hidden, 4 * hidden), (batch * hidden, 0, hidden), (0, hidden))
    kernel = NativeKernel.recurrent((steps, batch, 1, hidden), rule, ["sequence"], strides)
    sequence = np.empty((steps, batch, hidden), np.float32)
    scratch = np.empty(kernel.scratch_bytes(threads) // 8)
    run_kernel(kernel, gates, streamed(weights, "lstm"), sequence, scratch, threads=threads)
    wanted = by_definition(gates.astype(np.float64), weights[0].astype(np.float64), hidden)
    np.testing.assert_allclose(sequence, wanted, rtol=2e-5, atol=2e-6)


FUNCTIONS = {"sigmoid": sigmoid, "tanh": lambda x: np.tanh(x.astype(np.float64))}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_sigmoid_and_tangent_are_right_to_a_millionth(name):
    numbers = np.concatenate([np.linspace(-80, 80, 4001), np.geomspace(1e-30, 80, 2000)])
    gates = np.resize(np.concatenate([numbers, -numbers]), (1, 1, 12_016)).astype(np.float32)
    size = gates.shape[2]
    rule = NativeKernel.RecurrentRule("plain", [(name, 0.0, 0.0)], False, False, np.inf)
    strides = ((size, 16), (size, 0, 16), (0, 16))
    shape = (1, size // 16, 1, 16)
    kernel = NativeKernel.recurrent(shape, rule, ["sequence"], strides)
    sequence = np.empty_like(gates)
    weights = np.zeros((1, 16, 16), np.float32)
    scratch = np.empty(kernel.scratch_bytes(1) // 8)
    run_kernel(kernel, gates, streamed(weights, "plain"), sequence, scratch)
    np.testing.assert_allclose(sequence, FUNCTIONS[name](gates), rtol=1e-6)


@pytest.mark.parametrize("cell", ["lstm", "gru", "linear_gru", "plain"])
def test_weights_are_streamed_from_one_copy(cell: str) -> None:
    """A plan counts what packing holds: the constant, and its packed copy."""
    gates = {"lstm": 4, "plain": 1}.get(cell, 3)
    weights = np.random.default_rng(0).standard_normal((2, gates * 256, 256)).astype(np.float32)
    tracemalloc.start()
    try:
        packed = streamed(weights, cell)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    np.testing.assert_array_equal(np.sort(packed), np.sort(weights, axis=None))
    assert peak < packed.nbytes * 1.1
