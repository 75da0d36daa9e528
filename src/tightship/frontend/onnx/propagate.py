"""Values that follow from shapes and small constants, found while types are inferred."""

from collections.abc import Sequence

import numpy as np
from onnx import TypeProto

from tightship.frontend.onnx import types
from tightship.frontend.onnx.evaluate import EVALUATORS, Call, NotEvaluatedError
from tightship.frontend.onnx.scope import KNOWN_ELEMENTS_MAX, Scope
from tightship.graph import Constant, Fill, Inline, Node, element_count
from tightship.graph.constant import Array

_BOUNDED = frozenset({"NonZero", "Compress", "Unique"})
"""Operators whose output shape depends on data, and is no larger than their input."""

_FAILURES = (
    NotEvaluatedError,
    ArithmeticError,
    IndexError,
    KeyError,
    TypeError,
    ValueError,
)


def propagate(node: Node, scope: Scope, inferred: Sequence[TypeProto]) -> Sequence[Constant] | None:
    """The values of a node's outputs, if they are known before the run.

    A node that cannot be evaluated is left to the run, which says what is wrong with it.
    """
    if node.domain:
        return None
    if node.operator in ("Shape", "Size"):
        return _measure(node, scope)
    if node.operator == "Identity" and len(node.inputs) == 1:
        constant = scope.constant_of(node.inputs[0])
        return None if constant is None else [constant]
    evaluator = EVALUATORS.get(node.operator)
    if node.operator != "ConstantOfShape" and (evaluator is None or not _is_small(node, inferred)):
        return None
    arrays: list[Array | None] = []
    for name in node.inputs:
        constant = scope.small_constant_of(name) if name else None
        if name and constant is None:
            return None
        arrays.append(None if constant is None else constant.array())
    if evaluator is None:
        return _fill(node, arrays)
    try:
        with np.errstate(all="ignore"):
            found = evaluator(Call(tuple(arrays), node.attributes, node.version))
    except _FAILURES:
        return None
    outputs = found if isinstance(found, list) else [found]
    return [_inline(array) for array in outputs] if len(outputs) == len(node.outputs) else None


def _measure(node: Node, scope: Scope) -> Sequence[Constant] | None:
    """`Shape` and `Size` of a value, itself known or not."""
    type_ = scope.type_of(node.inputs[0], node.name)
    shape = types.static_shape_of(type_) if types.is_tensor(type_) else None
    if shape is None:
        return None
    if node.operator == "Size":
        count = element_count(shape)
        return [_inline(np.array(count, np.int64))] if count < 1 << 63 else None
    start, end = node.attributes.get("start", 0), node.attributes.get("end", len(shape))
    assert isinstance(start, int)
    assert isinstance(end, int)
    rank = len(shape)
    start, end = (min(max(i + rank if i < 0 else i, 0), rank) for i in (start, end))
    return [_inline(np.array(shape[start:end], np.int64))]


def _fill(node: Node, arrays: Sequence[Array | None]) -> Sequence[Constant] | None:
    """`ConstantOfShape` of a known shape."""
    value = node.attributes.get("value")
    shape = arrays[0] if len(arrays) == 1 else None
    if shape is None or shape.ndim != 1 or shape.dtype != np.int64:
        return None
    lengths = tuple(int(length) for length in shape)
    if any(length < 0 for length in lengths):
        return None
    if value is None:
        filling: Array = np.zeros(1, np.float32)
    elif isinstance(value, Inline) and value.value.size == 1:
        filling = value.value
    else:
        return None
    return [Fill(filling.reshape(()), lengths)]


def _is_small(node: Node, inferred: Sequence[TypeProto]) -> bool:
    if node.operator in _BOUNDED:
        return True
    shapes = [types.static_shape_of(t) if types.is_tensor(t) else None for t in inferred]
    return all(s is not None and element_count(s) <= KNOWN_ELEMENTS_MAX for s in shapes)


def _inline(array: Array) -> Inline:
    array = np.array(array)
    array.flags.writeable = False
    return Inline(array)
