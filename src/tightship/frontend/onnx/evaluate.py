"""Evaluation of shape arithmetic on small arrays, by operator."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
from onnx import TensorProto

from tightship.frontend.onnx.element import DTYPES
from tightship.graph import AttributeValue, DType
from tightship.graph.constant import Array


class NotEvaluatedError(Exception):
    """Operator in a form that is evaluated only at run time."""


@dataclass(frozen=True, slots=True)
class Call:
    """Operator applied to known inputs; None where an input is absent."""

    inputs: tuple[Array | None, ...]
    attributes: Mapping[str, AttributeValue]
    version: int

    def input(self, index: int = 0) -> Array:
        """Return a required input."""
        array = self.optional(index)
        if array is None:
            raise NotEvaluatedError
        return array

    def optional(self, index: int) -> Array | None:
        """Return an optional input."""
        return self.inputs[index] if index < len(self.inputs) else None

    def integer(self, name: str, default: int) -> int:
        """Return an attribute that is one integer."""
        value = self.attributes.get(name, default)
        if not isinstance(value, int):
            raise NotEvaluatedError
        return value

    def integers(self, name: str, index: int) -> tuple[int, ...] | None:
        """Return a list from an attribute, or, in newer opsets, an input; None if absent."""
        value = self.attributes.get(name)
        if isinstance(value, tuple):
            return tuple(int(element) for element in value)
        array = self.optional(index)
        return None if array is None else tuple(int(element) for element in array.reshape(-1))


Evaluator = Callable[[Call], Array | list[Array]]


def cast(call: Call) -> Array:
    array, dtype = call.input(), DTYPES[call.integer("to", 0)]
    if dtype not in _CASTS or array.dtype.kind not in "bifu":
        raise NotEvaluatedError
    return array.astype(dtype.numpy)


def clip(call: Call) -> Array:
    array, low, high = call.input(), call.optional(1), call.optional(2)
    if "min" in call.attributes or "max" in call.attributes:
        raise NotEvaluatedError
    array = array if low is None else np.maximum(array, low)
    return array if high is None else np.minimum(array, high)


def concat(call: Call) -> Array:
    arrays = [call.input(index) for index in range(len(call.inputs))]
    return np.concatenate(arrays, call.integer("axis", 0))


def divide(call: Call) -> Array:
    left, right = call.input(0), call.input(1)
    if left.dtype.kind == "f":
        return np.divide(left, right)
    if not right.all():
        raise NotEvaluatedError
    quotient = np.floor_divide(left, right)
    inexact = np.multiply(quotient, right) != left
    return np.where(inexact & (quotient < 0), quotient + 1, quotient).astype(left.dtype)


def modulo(call: Call) -> Array:
    left, right = call.input(0), call.input(1)
    truncated = bool(call.integer("fmod", 0))
    if left.dtype.kind == "f" and truncated:
        return np.fmod(left, right)
    if left.dtype.kind == "f" or not right.all():
        raise NotEvaluatedError
    return np.fmod(left, right) if truncated else np.mod(left, right)


def power(call: Call) -> Array:
    base = call.input(0)
    return np.power(base, call.input(1)).astype(base.dtype)


def expand(call: Call) -> Array:
    shape = tuple(int(length) for length in call.input(1))
    return np.broadcast_to(call.input(), np.broadcast_shapes(call.input().shape, shape))


def gather(call: Call) -> Array:
    return np.take(call.input(0), call.input(1).astype(np.int64), axis=call.integer("axis", 0))


def reshape(call: Call) -> Array:
    array, lengths = call.input(), call.integers("shape", 1)
    if lengths is None:
        raise NotEvaluatedError
    if not call.integer("allowzero", 0):
        lengths = tuple(array.shape[i] if n == 0 else n for i, n in enumerate(lengths))
    return array.reshape(lengths)


def range_value(call: Call) -> Array:
    start, limit, delta = (call.input(index).item() for index in range(3))
    return np.arange(start, limit, delta, dtype=call.input().dtype)


def slice_value(call: Call) -> Array:
    array = call.input()
    starts, ends = call.integers("starts", 1), call.integers("ends", 2)
    if starts is None or ends is None:
        raise NotEvaluatedError
    axes, steps = call.integers("axes", 3), call.integers("steps", 4)
    axes = tuple(range(len(starts))) if axes is None else axes
    steps = (1,) * len(starts) if steps is None else steps
    index = [slice(None)] * array.ndim
    for start, end, axis, step in zip(starts, ends, axes, steps, strict=True):
        past_first = step < 0 and end < -array.shape[axis]
        index[axis] = slice(start, None if past_first else end, step)
    return array[tuple(index)]


def split(call: Call) -> list[Array]:
    array, axis, lengths = call.input(), call.integer("axis", 0), call.integers("split", 1)
    if lengths is None or sum(lengths) != array.shape[axis]:
        raise NotEvaluatedError
    return list(np.split(array, np.cumsum(lengths)[:-1], axis))


def squeeze(call: Call) -> Array:
    return np.squeeze(call.input(), call.integers("axes", 1))


def unsqueeze(call: Call) -> Array:
    axes = call.integers("axes", 1)
    if axes is None:
        raise NotEvaluatedError
    return np.expand_dims(call.input(), axes)


def tile(call: Call) -> Array:
    return np.tile(call.input(0), tuple(int(count) for count in call.input(1)))


def transpose(call: Call) -> Array:
    return np.transpose(call.input(), call.integers("perm", len(call.inputs)))


def where(call: Call) -> Array:
    return np.where(call.input(0), call.input(1), call.input(2))


def reduction(name: str) -> Evaluator:
    """Evaluate by a function of NumPy's."""
    function = getattr(np, name)

    def evaluate(call: Call) -> Array:
        array, axes = call.input(), call.integers("axes", 1)
        if not axes and call.integer("noop_with_empty_axes", 0):
            return array
        keeps = bool(call.integer("keepdims", 1))
        return np.asarray(function(array, axis=axes or None, keepdims=keeps), array.dtype)

    return evaluate


def unary(name: str) -> Evaluator:
    """Evaluate by NumPy's function of a name."""
    return lambda call: getattr(np, name)(call.input())


def binary(name: str) -> Evaluator:
    """Evaluate by NumPy's function of a name."""
    return lambda call: getattr(np, name)(call.input(0), call.input(1))


def variadic(name: str) -> Evaluator:
    """Evaluate by a function of NumPy's."""
    function = getattr(np, name)

    def evaluate(call: Call) -> Array:
        result = call.input()
        for index in range(1, len(call.inputs)):
            result = function(result, call.input(index))
        return result

    return evaluate


_CASTS = frozenset(
    DTYPES[number]
    for number in (
        TensorProto.FLOAT,
        TensorProto.DOUBLE,
        TensorProto.INT32,
        TensorProto.INT64,
        TensorProto.BOOL,
    )
) | {DType.FLOAT16, DType.UINT8}


def non_zero(call: Call) -> Array:
    return np.array(np.nonzero(call.input()), np.int64)
