"""Kernels of any operator on operands that are objects: arrays, lists, None.

Operators whose rows name a body for objects run in it, those with a shape rule and a NumPy body in
a kernel that is made for the shapes that come, all others through `onnx.reference`.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tightship.engine.kernels.failure import named
from tightship.engine.kernels.kernel_context import NotCoveredError
from tightship.engine.kernels.reference import (
    Make,
    MakeRun,
    ReferenceRun,
    Types,
    reference_kernel,
)
from tightship.engine.kernels.sized.by_shape import by_shape
from tightship.engine.kernels.sized.elementwise import ufunc
from tightship.errors import GraphError
from tightship.graph import Node
from tightship.graph.operators import body, find
from tightship.graph.refusal import REFUSAL

_SIZED = "sized."
"""Bodies on arrays of numbers; they leave some operands to `onnx.reference`."""
_UFUNC = "elementwise.ufunc:"


@dataclass(frozen=True, slots=True)
class ObjectKernel:
    """Node ready to run, which allocates its results.

    `run` takes the node's inputs, then the captures of each of its subgraphs.
    """

    name: str
    run: ReferenceRun


def object_kernel(node: Node, types: Types = (), *, allow_reference: bool = True) -> ObjectKernel:
    """Make any node ready to run.

    Args:
        node: Any node.
        types: Types of its outputs, if known: a kernel of NumPy's tier writes them.
        allow_reference: Whether `onnx.reference` may run it, and the nodes of its subgraphs.

    Raises:
        GraphError: The operator does not exist, refuses its attributes, or needs `onnx.reference`,
            which is left out.
    """

    def make_run(inner: Node, inner_types: Types) -> ReferenceRun:
        return object_kernel(inner, inner_types, allow_reference=allow_reference).run

    def last_resort() -> ReferenceRun:
        if not allow_reference:
            raise _left_out(node)
        return reference_kernel(node)

    run = _of_numbers(node, types, make_run, last_resort)
    if run is not None:
        return ObjectKernel(node.operator, _guarded(node, run))
    make: Make | None = body("objects", node.operator, node.domain)
    if make is not None and not _is_sized(node):
        return ObjectKernel(node.operator, _guarded(node, make(node, make_run)))
    if node.domain == REFUSAL:
        return ObjectKernel(node.operator, _refusing(node))
    return ObjectKernel("onnx.reference", last_resort())


def _is_sized(node: Node) -> bool:
    return find(node.operator, node.domain).objects.startswith(_SIZED)


def _of_numbers(
    node: Node, types: Types, make_run: MakeRun, last_resort: Callable[[], ReferenceRun]
) -> ReferenceRun | None:
    """Make a kernel on arrays of numbers, with another for operands that it leaves.

    Returns None if there is none.
    """
    row = find(node.operator, node.domain)
    try:
        if _is_sized(node):
            make: Make = body("objects", node.operator, node.domain)
            compute = make(node, make_run)
        elif row.objects:
            return None
        elif row.numpy.startswith(_UFUNC):
            compute = ufunc(row.numpy.removeprefix(_UFUNC))(node, make_run)
        else:
            compute = by_shape(node, types)
    except NotCoveredError:
        return None
    other: list[ReferenceRun] = []

    def run(operands: Sequence[Any]) -> list[Any]:
        if all(map(_is_of_numbers, operands)):
            try:
                return compute(operands)
            except NotCoveredError:
                pass
        if not other:
            other.append(last_resort())
        return other[0](operands)

    return run


def _is_of_numbers(operand: Any) -> bool:  # noqa: ANN401
    return operand is None or (isinstance(operand, np.ndarray) and operand.dtype.kind in "biuf")


def _left_out(node: Node) -> GraphError:
    return GraphError(
        f"Node `{node.name}` ({node.domain or 'ai.onnx'} {node.operator}) needs "
        "`onnx.reference`, which is left out. Leave it in: load without `reference` among "
        "`without`."
    )


def _guarded(node: Node, run: ReferenceRun) -> ReferenceRun:
    """Wrap a kernel so that its errors name the node."""

    def guarded(operands: Sequence[Any]) -> list[Any]:
        with named(node, "be run on these operands"):
            return run(operands)

    return guarded


def _refusing(node: Node) -> ReferenceRun:
    def run(_operands: Sequence[Any]) -> list[Any]:
        raise GraphError(str(node.attributes["reason"]))

    return run
