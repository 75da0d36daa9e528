"""Kernels of NumPy's tier on arrays whose shapes only the run knows, made as they come and kept."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import prod
from typing import Any

import numpy as np

from tightship.engine.kernels.kernel import Array, Kernel
from tightship.engine.kernels.kernel_context import NotCoveredError, covered, require
from tightship.engine.kernels.reference import ReferenceRun, Types
from tightship.engine.kernels.select import numpy_kernel
from tightship.graph import DType, Inline, Node, Value
from tightship.graph.operators import body
from tightship.graph.operators.shapes.shape_context import NoRuleError, Rule, ShapeContext

SETTING_COUNT = 64
"""Most elements of an operand that may determine the kernel, such as the sizes of Resize."""


KERNELS_MAX = 16
"""Most kernels that a node keeps, for as many combinations of shapes; the least recently used one
is released first."""


@dataclass(frozen=True, slots=True)
class _Operand:
    """An operand as far as the kernel may depend on it.

    Attributes:
        dtype: Its dtype.
        shape: Its shape.
        content: Its bytes, if it is small enough to determine the kernel; else None.
    """

    dtype: np.dtype[Any]
    shape: tuple[int, ...]
    content: bytes | None

    def setting(self) -> Array | None:
        """Return a copy of the operand, if it may determine the kernel."""
        if self.content is None:
            return None
        return np.frombuffer(self.content, self.dtype).reshape(self.shape)


def by_shape(node: Node, types: Types) -> ReferenceRun:
    """Make the node ready to run on arrays.

    The first run on operands of new shapes makes a kernel, which takes some 100 us; `KERNELS_MAX`
    are kept.

    Args:
        node: Node of an operator that has a shape rule and a NumPy body.
        types: Types of the outputs, in order; None for those left out.

    Raises:
        NotCoveredError: The operator has none of these, or a type is unknown.
    """
    rule: Rule = covered(body("shape", node.operator, node.domain))
    covered(body("numpy", node.operator, node.domain))
    require(len(types) == len(node.outputs))
    require(all(dtype or not name for name, dtype in zip(node.outputs, types, strict=True)))

    @lru_cache(KERNELS_MAX)
    def made(operands: tuple[_Operand | None, ...]) -> tuple[list[Value | None], Kernel | None]:
        shapes = tuple([None if x is None else x.shape for x in operands])
        settings = [None if x is None else x.setting() for x in operands]
        found = output_shapes(rule, node, shapes, settings)
        require(len(found) >= len(types))
        outputs = [
            Value(name, dtype, shape) if name else None
            for name, dtype, shape in zip(node.outputs, types, found, strict=False)
        ]
        if not any(value is not None and prod(value.static_shape) for value in outputs):
            return outputs, None
        inputs = [
            None if x is None else Value(name, DType.of(x.dtype), x.shape)
            for name, x in zip(node.inputs, operands, strict=True)
        ]
        known = {n: Inline(x) for n, x in zip(node.inputs, settings, strict=True) if x is not None}
        return outputs, covered(numpy_kernel(node, inputs, outputs, known))

    def run(operands: Sequence[Any]) -> list[Any]:
        arrays = [None if x is None else np.ascontiguousarray(x).reshape(x.shape) for x in operands]
        outputs, kernel = made(tuple(map(_described, arrays)))
        results = [_room(value) for value in outputs]
        if kernel is not None:
            scratch = np.empty(kernel.scratch_bytes, np.uint8) if kernel.scratch_bytes else None
            kernel.run(arrays, results, scratch)
        return results

    return run


def _described(array: Array | None) -> _Operand | None:
    if array is None:
        return None
    content = array.tobytes() if array.size <= SETTING_COUNT else None
    return _Operand(array.dtype, array.shape, content)


def _room(value: Value | None) -> Array | None:
    if value is None:
        return None
    assert value.dtype is not None
    return np.empty(value.static_shape, value.dtype.numpy)


def output_shapes(
    rule: Rule,
    node: Node,
    shapes: tuple[tuple[int, ...] | None, ...],
    settings: Sequence[Array | None] = (),
) -> list[tuple[int, ...]]:
    """Return the shapes of the outputs of a node.

    Args:
        rule: Rule of its operator.
        node: The node.
        shapes: Shapes of its operands, None for those left out.
        settings: Operands that are small enough to determine the result, None for others.

    Raises:
        NotCoveredError: The shapes follow from more than these.
    """
    integers = _each(settings, "iu", lambda x: tuple(map(int, x.reshape(-1).tolist())))
    numbers = _each(settings, "f", Inline)
    try:
        return rule(ShapeContext(node, shapes, integers, numbers))
    except NoRuleError:
        raise NotCoveredError from None


def _each(
    arrays: Sequence[Array | None], kinds: str, convert: Callable[[Array], Any]
) -> tuple[Any, ...]:
    return tuple(None if x is None or x.dtype.kind not in kinds else convert(x) for x in arrays)
