"""Scalar arguments that are inputs of the model, with values known only at run time.

Arguments that the shape of an output depends on must be constants. A value that breaks a rule of
NNAPI fails the run: it becomes an index beyond a table's end, which `Gather` refuses.
"""

import numpy as np

from tightship.driver.nnapi.emission import Emission, Tensor
from tightship.driver.nnapi.operation_type import FusedActivation
from tightship.graph import DType

BOUNDS = {
    FusedActivation.NONE: (-np.inf, np.inf),
    FusedActivation.RELU: (0.0, np.inf),
    FusedActivation.RELU1: (-1.0, 1.0),
    FusedActivation.RELU6: (0.0, 6.0),
}
"""Bounds of the result of each activation."""


def clipped(emission: Emission, tensor: Tensor, activation: Tensor) -> Tensor:
    """Apply the activation with this number to a float32 tensor."""
    emit, inline = emission.emit, emission.inline
    beyond = inline(np.array(len(BOUNDS), np.int32))
    zero = inline(np.array(0, np.int32))
    is_low = emit("Less", [activation, zero], (), DType.BOOL)
    index = emit("Where", [is_low, beyond, activation], (), DType.INT32)
    for operator, bounds in zip(("Max", "Min"), zip(*BOUNDS.values(), strict=True), strict=True):
        table = inline(np.array(bounds, np.float32))
        bound = emit("Gather", [table, index], (), axis=0)
        tensor = emit(operator, [tensor, bound], tensor.shape)
    return tensor


def where(emission: Emission, tensor: Tensor, condition: Tensor) -> Tensor:
    """Return the tensor if the condition holds in a run; the run fails otherwise."""
    emit, inline = emission.emit, emission.inline
    places = [inline(np.array(place, np.int32)) for place in (0, 1)]
    index = emit("Where", [condition, *places], (), DType.INT32)
    table = inline(np.zeros(1, tensor.dtype.numpy))
    zero = emit("Gather", [table, index], (), axis=0)
    return emit("Sub", [tensor, zero], tensor.shape)


def equal(emission: Emission, scalar: Tensor, wanted: int) -> Tensor:
    """Compare an INT32 scalar to a number."""
    number = emission.inline(np.array(wanted, np.int32))
    return emission.emit("Equal", [scalar, number], (), DType.BOOL)


def softmax(emission: Emission, value: Tensor, axis: Tensor) -> Tensor:
    """Compute softmax along every axis and select the one that the run names."""
    emit, inline, rank = emission.emit, emission.inline, len(value.shape)
    made, is_axis = value, inline(np.zeros((), bool))
    for each in range(rank):
        matches = [equal(emission, axis, each), equal(emission, axis, each - rank)]
        is_this = emit("Or", matches, (), DType.BOOL)
        is_axis = emit("Or", [is_axis, is_this], (), DType.BOOL)
        found = emit("Softmax", [value], value.shape, axis=each)
        made = emit("Where", [is_this, found, made], value.shape, DType.FLOAT32)
    return where(emission, made, is_axis)


def reshaped(emission: Emission, tensor: Tensor, lengths: Tensor, shape: tuple[int, ...]) -> Tensor:
    """Reshape to the declared shape, if a run's lengths agree; one of them may be -1."""
    emit, inline = emission.emit, emission.inline
    declared, opened = (inline(np.array(each, np.int32)) for each in (shape, [-1] * len(shape)))
    is_open = emit("Equal", [lengths, opened], lengths.shape, DType.BOOL)
    is_named = emit("Equal", [lengths, declared], lengths.shape, DType.BOOL)
    is_fit = emit("Or", [is_open, is_named], lengths.shape)
    counts = [
        emit(
            "ReduceSum",
            [emit("Cast", [each], lengths.shape, DType.INT32, to=_INT32_NUMBER)],
            (),
            keepdims=0,
        )
        for each in (is_fit, is_open)
    ]
    is_whole = equal(emission, counts[0], len(shape))
    two = inline(np.array(2, np.int32))
    is_one = emit("Less", [counts[1], two], (), DType.BOOL)
    is_right = emit("And", [is_whole, is_one], ())
    moved = emit("Reshape", [tensor, emission.lengths(shape)], shape)
    return where(emission, moved, is_right)


_INT32_NUMBER = 6  # argument of `Cast`
