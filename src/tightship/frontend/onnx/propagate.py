"""Values that follow from shapes and small constants, found during type inference."""

from collections.abc import Callable, Sequence

import numpy as np
from onnx import TypeProto

from tightship.frontend.onnx import types
from tightship.frontend.onnx.evaluate import Call, Evaluator, NotEvaluatedError
from tightship.frontend.onnx.scope import KNOWN_ELEMENTS_MAX, Scope
from tightship.frontend.onnx.tensor import RANK_MAX
from tightship.graph import Constant, DType, Fill, Inline, Node, element_count
from tightship.graph.constant import Array
from tightship.graph.operators import body

_BOUNDED = frozenset({"NonZero", "Compress", "Unique"})
"""Operators whose output shape depends on data, but is at most as large as their input."""

_FAILURES = (
    NotEvaluatedError,
    ArithmeticError,
    IndexError,
    KeyError,
    TypeError,
    ValueError,
)


def foresee(node: Node, scope: Scope) -> Sequence[Constant] | None:
    """Return the values of a node's outputs if they follow without inferring types.

    A malformed node is left to the inference, which reports the error.
    """
    rule = _FORESEEN.get(node.operator)
    if rule is None or node.domain or len(node.inputs) != 1 or len(node.outputs) != 1:
        return None
    return rule(node, scope)


def evaluate(node: Node, scope: Scope, inferred: Sequence[TypeProto]) -> Sequence[Constant] | None:
    """Return the values of a node's outputs, if its inputs are known and small.

    A node that cannot be evaluated is left to the run, which reports the error.
    """
    evaluator: Evaluator | None = body("known", node.operator, node.domain)
    if evaluator is None:
        return None
    arrays: list[Array | None] = []
    for name in node.inputs:
        constant = scope.small_constant_of(name) if name else None
        if name and constant is None:
            return None
        arrays.append(None if constant is None else constant.array())
    if not _is_small(node, inferred):
        return None
    try:
        with np.errstate(all="ignore"):
            found = evaluator(Call(tuple(arrays), node.attributes, node.version))
    except _FAILURES:
        return None
    outputs = found if isinstance(found, list) else [found]
    return [_inline(array) for array in outputs] if len(outputs) == len(node.outputs) else None


def _same(node: Node, scope: Scope) -> Sequence[Constant] | None:
    constant = scope.constant_of(node.inputs[0])
    return None if constant is None or node.attributes else [constant]


def _shape(node: Node, scope: Scope) -> Sequence[Constant] | None:
    shape = _static_shape(node, scope)
    rank = 0 if shape is None else len(shape)
    start, end = node.attributes.get("start", 0), node.attributes.get("end", rank)
    others = node.attributes.keys() - {"start", "end"}
    if shape is None or others or not (isinstance(start, int) and isinstance(end, int)):
        return None
    start, end = (min(max(i + rank if i < 0 else i, 0), rank) for i in (start, end))
    return [_inline(np.array(shape[start:end], np.int64))]


def _size(node: Node, scope: Scope) -> Sequence[Constant] | None:
    shape = _static_shape(node, scope)
    if shape is None or node.attributes or element_count(shape) >= 1 << 63:
        return None
    return [_inline(np.array(element_count(shape), np.int64))]


def _static_shape(node: Node, scope: Scope) -> tuple[int, ...] | None:
    type_ = scope.type_of(node.inputs[0], node.name)
    return types.static_shape_of(type_) if types.is_tensor(type_) else None


def _fill(node: Node, scope: Scope) -> Sequence[Constant] | None:
    lengths = scope.small_constant_of(node.inputs[0])
    filling = node.attributes.get("value", _ZERO)
    if lengths is None or node.attributes.keys() - {"value"} or not isinstance(filling, Inline):
        return None
    if lengths.dtype is not DType.INT64 or len(lengths.shape) != 1 or filling.value.size != 1:
        return None
    shape = tuple(int(length) for length in lengths.array())
    is_valid = len(shape) <= RANK_MAX and all(length >= 0 for length in shape)
    return [Fill(filling.value.reshape(()), shape)] if is_valid else None


_ZERO = Inline(np.zeros(1, np.float32))

_FORESEEN: dict[str, Callable[[Node, Scope], Sequence[Constant] | None]] = {
    "ConstantOfShape": _fill,
    "Identity": _same,
    "Shape": _shape,
    "Size": _size,
}


def _is_small(node: Node, inferred: Sequence[TypeProto]) -> bool:
    if node.operator in _BOUNDED:
        return True
    shapes = [types.static_shape_of(t) if types.is_tensor(t) else None for t in inferred]
    return all(s is not None and element_count(s) <= KNOWN_ELEMENTS_MAX for s in shapes)


def _inline(array: Array) -> Inline:
    array = np.array(array)
    array.flags.writeable = False
    return Inline(array)
