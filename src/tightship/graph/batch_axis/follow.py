"""Follows the batch from the inputs of a graph to its outputs."""

from collections.abc import Mapping
from dataclasses import dataclass

from tightship.graph.batch_axis.rules import rule_of
from tightship.graph.batch_axis.step import FixedBatchError, Step
from tightship.graph.ir import Graph

LENGTHS = frozenset({"Shape", "Size"})
"""Operators that read lengths alone, which are computed again for another batch."""


@dataclass(frozen=True, slots=True)
class Target:
    """Shape among a node's inputs that names the batch.

    Attributes:
        output: First output of the node.
        operator: Operator of the node.
        index: Which input the shape is.
        axis: Its entry for the batch.
        shape: All entries, for the batch of the file.
    """

    output: str
    operator: str
    index: int
    axis: int
    shape: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Repeated:
    """Constant that needs a copy for each sample.

    Attributes:
        output: First output of the node that reads it.
        operator: Operator of the node.
        index: Which input it is.
        axis: Axis along which the copies lie.
    """

    output: str
    operator: str
    index: int
    axis: int


@dataclass(frozen=True, slots=True)
class Batched:
    """Changes that another batch needs.

    Attributes:
        batch: Samples in the file.
        input: Input whose first dimension says so.
        axes: Batch axis of every value that has samples.
        targets: Shapes that name the batch.
        repeated: Constants that need copies.
    """

    batch: int
    input: str
    axes: Mapping[str, int]
    targets: tuple[Target, ...]
    repeated: tuple[Repeated, ...]


def follow_batch(graph: Graph) -> Batched:
    """Follow the batch, which is the first dimension of the inputs, through a graph.

    Args:
        graph: Graph whose shapes are known. Inputs whose first dimension is another than that of
            the first input have no samples.

    Raises:
        FixedBatchError: No input has a first dimension, a node does not keep samples apart, or no
            output has samples.
    """
    shapes = {name: graph.value(name).shape for name in graph.inputs}
    told = next((name for name, shape in shapes.items() if shape), None)
    first = None if told is None else (shapes[told] or (None,))[0]
    if told is None or not isinstance(first, int):
        raise FixedBatchError("No input has a first dimension of known length.")
    axes = {name: 0 for name, shape in shapes.items() if shape and shape[0] == first}
    targets: list[Target] = []
    repeated: list[Repeated] = []
    for node in graph.nodes:
        if axes.keys().isdisjoint(node.reads) or node.operator in LENGTHS:
            continue
        at = Step(graph, node, first, tuple(axes.get(name) for name in node.inputs))
        axes.update(_followed(at))
        of = node.outputs[0], node.operator
        targets += [Target(*of, index, axis, at.result) for index, axis in at.targets.items()]
        repeated += [Repeated(*of, index, axis) for index, axis in at.repeated.items()]
    for name in graph.outputs:
        if name not in axes:
            raise FixedBatchError(
                f"Output `{name}` has no samples, so it is the same for any batch."
            )
    return Batched(first, told, axes, tuple(targets), tuple(repeated))


def _followed(at: Step) -> dict[str, int]:
    """Return the batch axes of the outputs of a node."""
    node = at.node
    if node.subgraphs:
        at.refuse("has a body, whose samples are not followed")
    if not all(at.graph.value(name).is_static for name in node.writes):
        at.refuse("has a shape that data decide")
    found = rule_of(at)(at)
    named = [(name, found[min(place, len(found) - 1)]) for place, name in enumerate(node.outputs)]
    return {name: axis for name, axis in named if name and axis is not None}
