"""Evaluates shape arithmetic on small integer tensors whose elements may be symbolic lengths."""

from collections.abc import Callable
from functools import reduce
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tightship.graph.operators.shapes.shape_context import NoRuleError, ShapeContext

Array = NDArray[Any]
"""Array of integers and symbolic lengths."""

Evaluate = Callable[[ShapeContext, list[Array]], Array]


def cast(context: ShapeContext, arrays: list[Array]) -> Array:
    if context.integer("to", 0) not in (6, 7):
        raise NoRuleError
    return arrays[0]


def concat(context: ShapeContext, arrays: list[Array]) -> Array:
    return np.concatenate(arrays, context.integer("axis", 0))


def gather(context: ShapeContext, arrays: list[Array]) -> Array:
    return np.take(arrays[0], arrays[1].astype(np.int64), axis=context.integer("axis", 0))


def reshape(_: ShapeContext, arrays: list[Array]) -> Array:
    return arrays[0].reshape([int(length) for length in arrays[1]])


def slice_value(context: ShapeContext, arrays: list[Array]) -> Array:
    starts, ends = context.integers("starts", 1), context.integers("ends", 2)
    steps = context.integers("steps", 4) or (1,)
    if starts is None or ends is None or arrays[0].ndim != 1 or len(starts) != 1:
        raise NoRuleError
    return arrays[0][int(starts[0]) : int(ends[0]) : int(steps[0])]


def squeeze(context: ShapeContext, arrays: list[Array]) -> Array:
    return np.squeeze(arrays[0], context.integers("axes", 1))


def unsqueeze(context: ShapeContext, arrays: list[Array]) -> Array:
    axes = context.integers("axes", 1)
    if axes is None:
        raise NoRuleError
    return np.expand_dims(arrays[0], axes)


def divide(_: ShapeContext, arrays: list[Array]) -> Array:
    """Divide; ONNX truncates and this floors, which agree if nothing is negative."""
    left, right = np.broadcast_arrays(arrays[0], arrays[1])
    if any(value < 0 for value in left.flat) or any(value < 1 for value in right.flat):
        raise NoRuleError
    return np.floor_divide(arrays[0], arrays[1])


def where(_: ShapeContext, arrays: list[Array]) -> Array:
    chosen, left, right = np.broadcast_arrays(*arrays)
    pairs = zip(chosen.flat, left.flat, right.flat, strict=True)
    found = np.empty(chosen.size, object)
    for index, (is_left, one, other) in enumerate(pairs):
        found[index] = one if is_left else other
    return found.reshape(chosen.shape)


def equal(_: ShapeContext, arrays: list[Array]) -> Array:
    left, right = np.broadcast_arrays(arrays[0], arrays[1])
    found = [bool(one == other) for one, other in zip(left.flat, right.flat, strict=True)]
    return np.array(found, object).reshape(left.shape)


def product(context: ShapeContext, arrays: list[Array]) -> Array:
    if context.integers("axes", 1) not in (None, (), (0,)) or arrays[0].ndim != 1:
        raise NoRuleError
    found = np.multiply.reduce(arrays[0])
    result = np.empty((1,) if context.integer("keepdims", 1) else (), object)
    result[...] = found
    return result


def identity(_: ShapeContext, arrays: list[Array]) -> Array:
    return arrays[0]


def ufunc(name: str) -> Evaluate:
    """Evaluate by a function of two arrays of NumPy's."""
    return lambda _, arrays: getattr(np, name)(arrays[0], arrays[1])


def folded(name: str) -> Evaluate:
    """Fold all arrays by a function of NumPy's."""
    return lambda _, arrays: reduce(getattr(np, name), arrays)
