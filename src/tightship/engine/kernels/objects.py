"""Kernels of any operator on operands that are objects: arrays, lists, None.

Control flow, optionals, NonMaxSuppression, STFT, StringConcat and StringSplit have kernels of their
own; all other operators run in `onnx.reference`.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tightship.engine.kernels.failure import named
from tightship.engine.kernels.reference import MakeRun, ReferenceRun, reference_kernel
from tightship.engine.on_demand import OnDemand, names
from tightship.errors import GraphError
from tightship.graph import Node
from tightship.graph.refusal import REFUSAL

CONTROL: Mapping[str, Callable[[Node, MakeRun], ReferenceRun]] = OnDemand(
    "tightship.engine.kernels",
    {"control.CONTROL": names("If Loop Scan SequenceMap")},
)
ALONE: Mapping[str, MakeRun] = OnDemand(
    "tightship.engine.kernels",
    {
        "detection.DETECTION": names("NonMaxSuppression"),
        "signal.SIGNAL": names("STFT"),
        "strings.STRINGS": names("StringConcat StringSplit"),
    },
)
OPTIONAL: Mapping[str, ReferenceRun] = OnDemand(
    "tightship.engine.kernels",
    {"optional.OPTIONAL": names("Optional OptionalGetElement OptionalHasElement")},
)


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

    if node.domain == "" and node.operator in CONTROL:
        return ObjectKernel(node.operator, _guarded(node, CONTROL[node.operator](node, make_run)))
    if node.domain == "" and node.operator in OPTIONAL:
        return ObjectKernel(node.operator, _guarded(node, OPTIONAL[node.operator]))
    if node.domain == "" and node.operator in ALONE:
        return ObjectKernel(node.operator, _guarded(node, ALONE[node.operator](node)))
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
