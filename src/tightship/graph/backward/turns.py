"""A loop whose turns are counted before the run, as a Scan has it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from tightship.graph.backward.site import Site
from tightship.graph.constant import Inline
from tightship.graph.ir import AttributeValue, Graph, Node
from tightship.graph.loop_trips import trip_count

_BATCHED_SCAN_VERSION = 8


@dataclass(frozen=True, slots=True)
class Lane:
    """What a body takes or gives a slice of in each turn.

    Attributes:
        inner: The slice, in the body.
        outer: The whole, around it; empty if it is left out.
        axis: Where slices lie.
        is_backward: Whether the last slice is that of the first turn.
    """

    inner: str
    outer: str
    axis: int = 0
    is_backward: bool = False


@dataclass(frozen=True, slots=True)
class Turns:
    """A Scan, or a Loop written as one.

    Attributes:
        node: The forward node.
        body: Takes states, then slices; gives states, then elements.
        starts: What states are before the first turn.
        slices: What is taken apart.
        elements: What is stacked.
        count: How many turns there are.
    """

    node: Node
    body: Graph
    starts: tuple[str, ...]
    slices: tuple[Lane, ...]
    elements: tuple[Lane, ...]
    count: int

    @property
    def states(self) -> tuple[str, ...]:
        """States as a turn starts with them, in the body."""
        return self.body.inputs[: len(self.starts)]

    def saving(self, states: Sequence[Lane]) -> Node:
        """The forward node, which stacks these states too."""
        outputs = (*self.body.outputs, *(lane.inner for lane in states))
        wholes = [*self.elements, *states]
        kept = (*self.node.outputs, *[""] * len(self.starts))[: len(self.starts)]
        return replace(
            self.node,
            operator="Scan",
            inputs=(*self.starts, *(lane.outer for lane in self.slices)),
            outputs=(*kept, *(lane.outer for lane in wholes)),
            attributes=scan_attributes(replace(self.body, outputs=outputs), self.slices, wholes),
            version=max(self.node.version, _BATCHED_SCAN_VERSION + 1),
        )


def scan_attributes(
    body: Graph, slices: Sequence[Lane], elements: Sequence[Lane]
) -> Mapping[str, AttributeValue]:
    """What a Scan has beside its operands."""
    return {
        "body": body,
        "num_scan_inputs": len(slices),
        "scan_input_axes": tuple(lane.axis for lane in slices),
        "scan_input_directions": tuple(int(lane.is_backward) for lane in slices),
        "scan_output_axes": tuple(lane.axis for lane in elements),
        "scan_output_directions": tuple(int(lane.is_backward) for lane in elements),
    }


def turns_of(at: Site) -> Turns:
    """A Loop or a Scan whose turns are counted.

    Raises:
        GraphError: Data may decide how many there are, or it is a Scan of a batch.
    """
    body = at.node.attributes["body"]
    assert isinstance(body, Graph), at.node.name
    around = {name: at.tape.graph.value(name) for name in body.captures}
    body = replace(body, values={**body.values, **around})
    return _of_loop(at, body) if at.node.operator == "Loop" else _of_scan(at, body)


def _of_loop(at: Site, body: Graph) -> Turns:
    """A Scan over the numbers of the turns, whose condition is true."""
    count = trip_count(at.node.inputs, body, at.tape.constant)
    if count is None:
        raise at.refusal(
            "is known for loops that end by their count alone: have `M` a constant, and the "
            "condition true before the loop and in each turn. How far to go can be a mask that "
            "the turns multiply by"
        )
    turn, condition, *states = body.inputs
    inner = replace(
        body,
        inputs=(*states, turn),
        outputs=body.outputs[1:],
        constants={**body.constants, condition: Inline(np.ones((), np.bool_))},
    )
    numbers = at.tape.hold(f"{at.node.writes[0]}.turns", Inline(np.arange(count)))
    outputs = (*at.node.outputs, *[""] * len(inner.outputs))
    elements = zip(inner.outputs[len(states) :], outputs[len(states) :], strict=False)
    lanes = tuple([Lane(name, whole) for name, whole in elements])
    return Turns(at.node, inner, at.node.inputs[2:], (Lane(turn, numbers),), lanes, count)


def _of_scan(at: Site, body: Graph) -> Turns:
    node = at.node
    if node.version <= _BATCHED_SCAN_VERSION:
        raise at.refusal("is not known, for it has a batch axis: convert the model to opset 9")
    count = at.integer("num_scan_inputs", 1)
    first = len(node.inputs) - count
    outputs = (*node.outputs, *[""] * len(body.outputs))
    slices = _lanes(at, "input", body.inputs[first:], node.inputs[first:])
    elements = _lanes(at, "output", body.outputs[first:], outputs[first : len(body.outputs)])
    turns = at.shape(slices[0].outer)[slices[0].axis]
    return Turns(node, body, node.inputs[:first], slices, elements, turns)


def _lanes(at: Site, kind: str, inner: Sequence[str], outer: Sequence[str]) -> tuple[Lane, ...]:
    axes = _numbers(at, f"scan_{kind}_axes", len(inner))
    directions = _numbers(at, f"scan_{kind}_directions", len(inner))
    found = zip(inner, outer, axes, map(bool, directions), strict=True)
    return tuple([Lane(*each) for each in found])


def _numbers(at: Site, name: str, count: int) -> tuple[int, ...]:
    given = at.node.attributes.get(name, (0,) * count)
    assert isinstance(given, tuple), (at.node.name, name)
    return tuple(int(number) for number in given)
