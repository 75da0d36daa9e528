"""RNN, GRU and LSTM in all their forms, against onnxruntime."""

from typing import Any

import numpy as np
import onnxruntime
import pytest
from hypothesis import given
from hypothesis import strategies as st
from onnx import TensorProto, helper

from tests.engine.kernels.typed import typed

GATES = {"RNN": 1, "GRU": 3, "LSTM": 4}
ACTIVATIONS = {"RNN": 1, "GRU": 2, "LSTM": 3}
NAMES = (
    "Affine",
    "Elu",
    "HardSigmoid",
    "LeakyRelu",
    "Relu",
    "ScaledTanh",
    "Sigmoid",
    "Softplus",
    "Softsign",
    "Tanh",
    "ThresholdedRelu",
)

Inputs = list[np.ndarray | None]


def make_inputs(operator: str, direction: str, *, seed: int, filled: int) -> Inputs:
    """Inputs of a node; bit k of `filled` says whether optional input 3 + k is there."""
    random = np.random.default_rng(seed)
    times, batch, width, size = (int(n) for n in random.integers(1, 5, 4))
    directions, gates = 2 if direction == "bidirectional" else 1, GATES[operator]

    def floats(*shape: int) -> np.ndarray:
        return random.standard_normal(shape).astype(np.float32)

    optional: Inputs = [
        floats(directions, 2 * gates * size),
        random.integers(1, times + 1, batch).astype(np.int32),
        floats(directions, batch, size),
    ]
    if operator == "LSTM":
        optional += [floats(directions, batch, size), floats(directions, 3 * size)]
    kept = [value if filled >> k & 1 else None for k, value in enumerate(optional)]
    return [
        floats(times, batch, width),
        floats(directions, gates * size, width),
        floats(directions, gates * size, size),
        *kept,
    ]


def onnxruntime_of(operator: str, inputs: Inputs, **attributes: Any) -> list[np.ndarray]:
    names = ["" if value is None else f"x{i}" for i, value in enumerate(inputs)]
    given = {name: x for name, x in zip(names, inputs, strict=True) if x is not None}
    outputs = ["y", "h", "c"][: 3 if operator == "LSTM" else 2]
    infos = [
        helper.make_tensor_value_info(n, helper.np_dtype_to_tensor_dtype(x.dtype), x.shape)
        for n, x in given.items()
    ]
    results = [helper.make_tensor_value_info(n, TensorProto.FLOAT, None) for n in outputs]
    node = helper.make_node(operator, names, outputs, **attributes)
    graph = helper.make_graph([node], "g", infos, results)
    opsets = [helper.make_opsetid("", 14)]
    model = helper.make_model(graph, opset_imports=opsets, ir_version=8)
    session = onnxruntime.InferenceSession(
        model.SerializeToString(), providers=["CPUExecutionProvider"]
    )
    return session.run(None, given)


def ours(operator: str, inputs: Inputs, **attributes: Any) -> list[np.ndarray]:
    outputs = 3 if operator == "LSTM" else 2
    return typed(operator, *inputs, version=14, outputs=outputs, **attributes).run()


@pytest.mark.parametrize("operator", sorted(GATES))
@given(
    direction=st.sampled_from(["forward", "reverse", "bidirectional"]),
    filled=st.integers(0, 31),
    flag=st.booleans(),
    clip=st.sampled_from([0.0, 0.4]),
    seed=st.integers(0, 1000),
)
def test_every_form_gives_what_onnxruntime_gives(
    operator: str, direction: str, filled: int, flag: bool, clip: float, seed: int
) -> None:
    inputs = make_inputs(operator, direction, seed=seed, filled=filled)
    size = inputs[2].shape[2]
    attributes: dict[str, Any] = {"direction": direction, "hidden_size": size}
    if clip:
        attributes["clip"] = clip
    if operator != "RNN":
        attributes["input_forget" if operator == "LSTM" else "linear_before_reset"] = int(flag)
    expected = onnxruntime_of(operator, inputs, **attributes)
    for actual, wanted in zip(ours(operator, inputs, **attributes), expected, strict=True):
        np.testing.assert_allclose(actual, wanted, rtol=1e-4, atol=1e-5, strict=True)


@pytest.mark.parametrize("operator", sorted(GATES))
@pytest.mark.parametrize("name", NAMES)
def test_every_activation_is_applied(operator: str, name: str) -> None:
    inputs = make_inputs(operator, "bidirectional", seed=3, filled=1)
    attributes: dict[str, Any] = {
        "direction": "bidirectional",
        "hidden_size": inputs[2].shape[2],
        "activations": [name] * ACTIVATIONS[operator] * 2,
    }
    if name in ("Affine", "HardSigmoid", "ScaledTanh"):
        attributes["activation_beta"] = [0.3] * ACTIVATIONS[operator] * 2
    if "activation_beta" in attributes or name in ("Elu", "LeakyRelu", "ThresholdedRelu"):
        attributes["activation_alpha"] = [0.7] * ACTIVATIONS[operator] * 2
    expected = onnxruntime_of(operator, inputs, **attributes)
    for actual, wanted in zip(ours(operator, inputs, **attributes), expected, strict=True):
        np.testing.assert_allclose(actual, wanted, rtol=1e-4, atol=1e-5, strict=True)


@pytest.mark.parametrize("operator", sorted(GATES))
def test_the_batch_may_come_first(operator: str) -> None:
    inputs = make_inputs(operator, "bidirectional", seed=5, filled=31)
    size = inputs[2].shape[2]
    attributes = {"direction": "bidirectional", "hidden_size": size}
    y, *states = ours(operator, inputs, **attributes)
    swapped = [
        x if x is None or i in (1, 2, 3, 4, 7) else np.ascontiguousarray(x.swapaxes(0, 1))
        for i, x in enumerate(inputs)
    ]
    batch_y, *batch_states = ours(operator, swapped, layout=1, **attributes)
    np.testing.assert_array_equal(batch_y, y.transpose(2, 0, 1, 3))
    for actual, wanted in zip(batch_states, states, strict=True):
        np.testing.assert_array_equal(actual, wanted.swapaxes(0, 1))


def test_an_activation_that_does_not_exist_is_left_to_others() -> None:
    inputs = make_inputs("RNN", "forward", seed=1, filled=0)
    node = typed("RNN", *inputs, version=14, outputs=2, hidden_size=2, activations=["Cosine"])
    assert not node.is_covered
