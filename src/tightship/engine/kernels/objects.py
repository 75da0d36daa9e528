"""Any operator at all, on operands that are objects: arrays, lists, None.

Control flow and optionals run here, whatever else through `onnx.reference`.
"""

from dataclasses import dataclass

from tightship.engine.kernels.control import CONTROL
from tightship.engine.kernels.optional import OPTIONAL
from tightship.engine.kernels.reference import ReferenceRun, reference_kernel
from tightship.graph import Node


@dataclass(frozen=True, slots=True)
class ObjectKernel:
    """A node ready to run; it allocates what it returns.

    `run` takes the node's inputs, then the captures of each of its subgraphs.
    """

    name: str
    run: ReferenceRun


def object_kernel(node: Node) -> ObjectKernel:
    """Make any node ready to run.

    Raises:
        GraphError: There is no such operator, or it refuses its attributes.
    """
    if node.domain == "" and node.operator in CONTROL:
        return ObjectKernel(node.operator, CONTROL[node.operator](node, _run_of))
    if node.domain == "" and node.operator in OPTIONAL:
        return ObjectKernel(node.operator, OPTIONAL[node.operator])
    return ObjectKernel("onnx.reference", reference_kernel(node))


def _run_of(node: Node) -> ReferenceRun:
    return object_kernel(node).run
