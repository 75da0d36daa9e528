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


def _cast(call: Call) -> Array:
    array, dtype = call.input(), DTYPES[call.integer("to", 0)]
    if dtype not in _CASTS or array.dtype.kind not in "bifu":
        raise NotEvaluatedError
    return array.astype(dtype.numpy)


def _clip(call: Call) -> Array:
    array, low, high = call.input(), call.optional(1), call.optional(2)
    if "min" in call.attributes or "max" in call.attributes:
        raise NotEvaluatedError
    array = array if low is None else np.maximum(array, low)
    return array if high is None else np.minimum(array, high)


def _concat(call: Call) -> Array:
    arrays = [call.input(index) for index in range(len(call.inputs))]
    return np.concatenate(arrays, call.integer("axis", 0))


def _divide(call: Call) -> Array:
    left, right = call.input(0), call.input(1)
    if left.dtype.kind == "f":
        return np.divide(left, right)
    if not right.all():
        raise NotEvaluatedError
    quotient = np.floor_divide(left, right)
    inexact = np.multiply(quotient, right) != left
    return np.where(inexact & (quotient < 0), quotient + 1, quotient).astype(left.dtype)


def _modulo(call: Call) -> Array:
    left, right = call.input(0), call.input(1)
    truncated = bool(call.integer("fmod", 0))
    if left.dtype.kind == "f" and truncated:
        return np.fmod(left, right)
    if left.dtype.kind == "f" or not right.all():
        raise NotEvaluatedError
    return np.fmod(left, right) if truncated else np.mod(left, right)


def _power(call: Call) -> Array:
    base = call.input(0)
    return np.power(base, call.input(1)).astype(base.dtype)


def _expand(call: Call) -> Array:
    shape = tuple(int(length) for length in call.input(1))
    return np.broadcast_to(call.input(), np.broadcast_shapes(call.input().shape, shape))


def _gather(call: Call) -> Array:
    return np.take(call.input(0), call.input(1).astype(np.int64), axis=call.integer("axis", 0))


def _reshape(call: Call) -> Array:
    array, lengths = call.input(), call.integers("shape", 1)
    if lengths is None:
        raise NotEvaluatedError
    if not call.integer("allowzero", 0):
        lengths = tuple(array.shape[i] if n == 0 else n for i, n in enumerate(lengths))
    return array.reshape(lengths)


def _range(call: Call) -> Array:
    start, limit, delta = (call.input(index).item() for index in range(3))
    return np.arange(start, limit, delta, dtype=call.input().dtype)


def _slice(call: Call) -> Array:
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


def _split(call: Call) -> list[Array]:
    array, axis, lengths = call.input(), call.integer("axis", 0), call.integers("split", 1)
    if lengths is None or sum(lengths) != array.shape[axis]:
        raise NotEvaluatedError
    return list(np.split(array, np.cumsum(lengths)[:-1], axis))


def _squeeze(call: Call) -> Array:
    return np.squeeze(call.input(), call.integers("axes", 1))


def _unsqueeze(call: Call) -> Array:
    axes = call.integers("axes", 1)
    if axes is None:
        raise NotEvaluatedError
    return np.expand_dims(call.input(), axes)


def _tile(call: Call) -> Array:
    return np.tile(call.input(0), tuple(int(count) for count in call.input(1)))


def _transpose(call: Call) -> Array:
    return np.transpose(call.input(), call.integers("perm", len(call.inputs)))


def _where(call: Call) -> Array:
    return np.where(call.input(0), call.input(1), call.input(2))


def _reduction(function: Callable[..., Array]) -> Evaluator:
    def evaluate(call: Call) -> Array:
        array, axes = call.input(), call.integers("axes", 1)
        if not axes and call.integer("noop_with_empty_axes", 0):
            return array
        keeps = bool(call.integer("keepdims", 1))
        return np.asarray(function(array, axis=axes or None, keepdims=keeps), array.dtype)

    return evaluate


def _unary(function: Callable[[Array], Array]) -> Evaluator:
    return lambda call: function(call.input())


def _binary(function: Callable[[Array, Array], Array]) -> Evaluator:
    return lambda call: function(call.input(0), call.input(1))


def _variadic(function: Callable[[Array, Array], Array]) -> Evaluator:
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

EVALUATORS: dict[str, Evaluator] = {
    "Abs": _unary(np.abs),
    "Add": _binary(np.add),
    "And": _binary(np.logical_and),
    "Cast": _cast,
    "Ceil": _unary(np.ceil),
    "Clip": _clip,
    "Concat": _concat,
    "Div": _divide,
    "Equal": _binary(np.equal),
    "Expand": _expand,
    "Floor": _unary(np.floor),
    "Gather": _gather,
    "Greater": _binary(np.greater),
    "GreaterOrEqual": _binary(np.greater_equal),
    "Less": _binary(np.less),
    "LessOrEqual": _binary(np.less_equal),
    "Max": _variadic(np.maximum),
    "Min": _variadic(np.minimum),
    "Mod": _modulo,
    "Mul": _binary(np.multiply),
    "Neg": _unary(np.negative),
    "NonZero": _unary(lambda array: np.array(np.nonzero(array), np.int64)),
    "Not": _unary(np.logical_not),
    "Or": _binary(np.logical_or),
    "Pow": _power,
    "Range": _range,
    "Reciprocal": _unary(np.reciprocal),
    "ReduceMax": _reduction(np.max),
    "ReduceMin": _reduction(np.min),
    "ReduceProd": _reduction(np.prod),
    "ReduceSum": _reduction(np.sum),
    "Reshape": _reshape,
    "Round": _unary(np.rint),
    "Sign": _unary(np.sign),
    "Slice": _slice,
    "Split": _split,
    "Sqrt": _unary(np.sqrt),
    "Squeeze": _squeeze,
    "Sub": _binary(np.subtract),
    "Sum": _variadic(np.add),
    "Tile": _tile,
    "Transpose": _transpose,
    "Unsqueeze": _unsqueeze,
    "Where": _where,
    "Xor": _binary(np.logical_xor),
}
"""Functions that return the output of an operator, or a list of its outputs."""
