"""Kernels of NumPy's tier on arrays whose shapes only the run knows, made for those that come."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tightship.engine.kernels.kernel import Array
from tightship.engine.kernels.kernel_context import NotCoveredError, covered, require
from tightship.engine.kernels.reference import ReferenceRun, Types
from tightship.engine.kernels.select import numpy_kernel
from tightship.graph import DType, Inline, Node, Value
from tightship.graph.operators import body
from tightship.graph.operators.shapes.shape_context import NoRuleError, Rule, ShapeContext

SETTING_COUNT = 64
"""Most elements of an operand that may determine the kernel, such as the sizes of Resize."""


def by_shape(node: Node, types: Types) -> ReferenceRun:
    """Make the node ready to run on arrays; each run makes the kernel, which takes some 100 us.

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

    def run(operands: Sequence[Any]) -> list[Any]:
        arrays = [None if x is None else np.ascontiguousarray(x).reshape(x.shape) for x in operands]
        settings = [x if x is not None and x.size <= SETTING_COUNT else None for x in arrays]
        shapes = _output_shapes(rule, node, arrays, settings)
        require(len(shapes) >= len(types))
        outputs = [
            Value(name, dtype, shape) if name else None
            for name, dtype, shape in zip(node.outputs, types, shapes, strict=False)
        ]
        results = [_room(value) for value in outputs]
        if not any(result is not None and result.size for result in results):
            return results
        inputs = [
            None if x is None else Value(name, DType.of(x.dtype), x.shape)
            for name, x in zip(node.inputs, arrays, strict=True)
        ]
        known = {n: Inline(x) for n, x in zip(node.inputs, settings, strict=True) if x is not None}
        kernel = covered(numpy_kernel(node, inputs, outputs, known))
        scratch = np.empty(kernel.scratch_bytes, np.uint8) if kernel.scratch_bytes else None
        kernel.run(arrays, results, scratch)
        return results

    return run


def _room(value: Value | None) -> Array | None:
    if value is None:
        return None
    assert value.dtype is not None
    return np.empty(value.static_shape, value.dtype.numpy)


def _output_shapes(
    rule: Rule, node: Node, arrays: Sequence[Array | None], settings: Sequence[Array | None]
) -> list[tuple[int, ...]]:
    integers = _each(settings, "iu", lambda x: tuple(map(int, x.reshape(-1).tolist())))
    numbers = _each(settings, "f", Inline)
    shapes = tuple(None if x is None else x.shape for x in arrays)
    try:
        return rule(ShapeContext(node, shapes, integers, numbers))
    except NoRuleError:
        raise NotCoveredError from None


def _each(
    arrays: Sequence[Array | None], kinds: str, convert: Callable[[Array], Any]
) -> tuple[Any, ...]:
    return tuple(None if x is None or x.dtype.kind not in kinds else convert(x) for x in arrays)
