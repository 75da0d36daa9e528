"""Kernels of any operator on operands that are objects: arrays, lists, None.

Operators whose rows name a body run here, all others through `onnx.reference`.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from tightship.engine.kernels.failure import named
from tightship.engine.kernels.reference import Make, ReferenceRun, reference_kernel
from tightship.errors import GraphError
from tightship.graph import Node
from tightship.graph.operators import body
from tightship.graph.refusal import REFUSAL


@dataclass(frozen=True, slots=True)
class ObjectKernel:
    """Node ready to run, which allocates its results.

    `run` takes the node's inputs, then the captures of each of its subgraphs.
    """

    name: str
    run: ReferenceRun


def object_kernel(node: Node, *, allow_reference: bool = True) -> ObjectKernel:
    """Make any node ready to run.

    Args:
        node: Any node.
        allow_reference: Whether `onnx.reference` may run it, and the nodes of its subgraphs.

    Raises:
        GraphError: The operator does not exist, refuses its attributes, or needs `onnx.reference`,
            which is left out.
    """

    def make_run(inner: Node) -> ReferenceRun:
        return object_kernel(inner, allow_reference=allow_reference).run

    make: Make | None = body("objects", node.operator, node.domain)
    if make is not None:
        return ObjectKernel(node.operator, _guarded(node, make(node, make_run)))
    if node.domain == REFUSAL:
        return ObjectKernel(node.operator, _refusing(node))
    if not allow_reference:
        raise GraphError(
            f"Node `{node.name}` ({node.domain or 'ai.onnx'} {node.operator}) needs "
            "`onnx.reference`, which is left out. Leave it in: load without `reference` among "
            "`without`."
        )
    return ObjectKernel("onnx.reference", reference_kernel(node))


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
