"""Loops in the form of a Scan: states, inputs sliced and outputs stacked by iteration."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from tightship.graph.constant import Constant, Inline
from tightship.graph.ir import AttributeValue, Graph, Node, Value
from tightship.graph.loop_trips import trip_count

UNBATCHED_SCAN_VERSION = 9
"""First opset in which a Scan has no batch axis."""


@dataclass(frozen=True, slots=True)
class ScanAxis:
    """Axis that a body reads or writes a slice of in each iteration.

    Attributes:
        inner: Name of the slice, in the body.
        outer: Name of the whole, around it; empty if an element is left out.
        axis: Axis of the slices.
        is_backward: Whether the last slice is that of the first iteration.
    """

    inner: str
    outer: str
    axis: int = 0
    is_backward: bool = False


@dataclass(frozen=True, slots=True)
class LoopIterations:
    """Scan, or a Loop written as one.

    Attributes:
        node: Forward node.
        body: Graph from states and slices to states and elements.
        starts: States before the first iteration.
        slices: Inputs that are sliced; for a Loop `NUMBERS`, the numbers of its iterations.
        elements: Outputs that are stacked.
        count: Number of iterations; None if it is not known before the run.
    """

    node: Node
    body: Graph
    starts: tuple[str, ...]
    slices: tuple[ScanAxis, ...]
    elements: tuple[ScanAxis, ...]
    count: int | None

    @property
    def states(self) -> tuple[str, ...]:
        """States at the start of an iteration, in the body."""
        return self.body.inputs[: len(self.starts)]

    def saving(self, states: Sequence[ScanAxis]) -> Node:
        """Make the forward node stack these states too."""
        outputs = (*self.body.outputs, *(scan_axis.inner for scan_axis in states))
        wholes = [*self.elements, *states]
        kept = (*self.node.outputs, *[""] * len(self.starts))[: len(self.starts)]
        return replace(
            self.node,
            operator="Scan",
            inputs=(*self.starts, *(scan_axis.outer for scan_axis in self.slices)),
            outputs=(*kept, *(scan_axis.outer for scan_axis in wholes)),
            attributes=scan_attributes(replace(self.body, outputs=outputs), self.slices, wholes),
            version=max(self.node.version, UNBATCHED_SCAN_VERSION),
        )


NUMBERS = ""
"""Name of the whole that has the numbers of the iterations."""


def scan_attributes(
    body: Graph, slices: Sequence[ScanAxis], elements: Sequence[ScanAxis]
) -> Mapping[str, AttributeValue]:
    """Return the attributes of a Scan."""
    return {
        "body": body,
        "num_scan_inputs": len(slices),
        "scan_input_axes": tuple(scan_axis.axis for scan_axis in slices),
        "scan_input_directions": tuple(int(scan_axis.is_backward) for scan_axis in slices),
        "scan_output_axes": tuple(scan_axis.axis for scan_axis in elements),
        "scan_output_directions": tuple(int(scan_axis.is_backward) for scan_axis in elements),
    }


def iterations_of(
    node: Node, value_of: Callable[[str], Value], constant_of: Callable[[str], Constant | None]
) -> LoopIterations:
    """Convert a Loop, or a Scan without a batch axis, to its iterations."""
    body = node.attributes["body"]
    assert isinstance(body, Graph), node.name
    body = replace(body, values={**body.values, **{n: value_of(n) for n in body.captures}})
    outputs = (*node.outputs, *[""] * len(body.outputs))
    if node.operator == "Loop":
        iteration, condition, *states = body.inputs
        count = len(states)
        inner = replace(
            body,
            inputs=(*states, iteration),
            outputs=body.outputs[1:],
            constants={**body.constants, condition: Inline(np.ones((), np.bool_))},
        )
        found = zip(inner.outputs[count:], outputs[count:], strict=False)
        scan_axes = tuple([ScanAxis(name, whole) for name, whole in found])
        trips = trip_count(node.inputs, body, constant_of)
        return LoopIterations(
            node, inner, node.inputs[2:], (ScanAxis(iteration, NUMBERS),), scan_axes, trips
        )
    scans = node.integer("num_scan_inputs")
    first = len(node.inputs) - scans
    slices = _lanes(node, "input", body.inputs[first:], node.inputs[first:])
    elements = _lanes(node, "output", body.outputs[first:], outputs[first : len(body.outputs)])
    shape = value_of(slices[0].outer).shape
    length = None if shape is None else shape[slices[0].axis]
    iterations = length if isinstance(length, int) else None
    return LoopIterations(node, body, node.inputs[:first], slices, elements, iterations)


def _lanes(
    node: Node, kind: str, inner: Sequence[str], outer: Sequence[str]
) -> tuple[ScanAxis, ...]:
    axes = _numbers(node, f"scan_{kind}_axes", len(inner))
    directions = map(bool, _numbers(node, f"scan_{kind}_directions", len(inner)))
    found = zip(inner, outer, axes, directions, strict=True)
    return tuple([ScanAxis(*each) for each in found])


def _numbers(node: Node, name: str, count: int) -> tuple[int, ...]:
    given = node.attributes.get(name, (0,) * count)
    assert isinstance(given, tuple), (node.name, name)
    return tuple(int(number) for number in given)
