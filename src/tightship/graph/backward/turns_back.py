"""Gradients of loops whose turns are counted: a Scan from the last turn to the first.

Each of its turns computes anew what it reads of the forward one, from the states that this started
with: they are all that is kept, stacked. Gradients of what all turns read are summed up on the way.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from tightship.graph.backward.reach import leading_through
from tightship.graph.backward.gradient_context import GradientPath, GradientContext
from tightship.graph.backward.tape import OPSET
from tightship.graph.backward.turns import (
    UNBATCHED_SCAN_VERSION,
    Lane,
    Turns,
    scan_attributes,
    turns_of,
)
from tightship.graph.constant import Inline
from tightship.graph.ir import Graph, Node
from tightship.graph.new_names import NewNames


def differentiate_turns(at: GradientContext, gradient_path: GradientPath) -> Iterator[tuple[str, str]]:
    """Reads what slices are of, captures, and the states that turns start with."""
    way = _Way.of(at, _turns(at))
    if not way.carried and not way.stacked:
        return
    turns, made = way.turns, way.path(at, gradient_path)
    given = made.inputs[len(turns.body.inputs) :]
    carried, stacked = given[: len(way.carried)], given[len(way.carried) :]
    lanes = [
        *_saved(at, turns, made),
        *_slices(turns, made),
        *(Lane(name, gradient, lane.axis, not lane.is_backward)
          for name, (lane, gradient) in zip(stacked, way.stacked, strict=True)),
    ]  # fmt: skip
    summed, sums = _with_sums(made, range(len(carried), len(carried) + len(way.captures)))
    body = replace(summed, inputs=(*carried, *sums, *(lane.inner for lane in lanes)))
    gradients = body.outputs[len(body.outputs) - len(way.sliced) :]
    results = [
        Lane(name, "", lane.axis, not lane.is_backward)
        for name, lane in zip(gradients, way.sliced, strict=True)
    ]
    sources = [*way.starts, *way.captures, *(lane.outer for lane in way.sliced)]
    found = at.tape.write(
        "Scan",
        (*way.carried, *(_zeros(at, name) for name in way.captures), *(x.outer for x in lanes)),
        [at.type(name) if name in at.wanted else None for name in sources],
        scan_attributes(body, lanes, results),
    )
    yield from ((name, gradient) for name, gradient in zip(sources, found, strict=True) if gradient)


def _turns(at: GradientContext) -> Turns:
    """The node's turns, whose numbers are a constant.

    Raises:
        GraphError: Data may decide how many there are, or it is a Scan of a batch.
    """
    if at.node.operator == "Scan" and at.node.version < UNBATCHED_SCAN_VERSION:
        raise at.refusal("is not known, for it has a batch axis: convert the model to opset 9")
    turns = turns_of(at.node, at.tape.graph.value, at.tape.constant)
    if at.node.operator == "Scan":
        length = at.shape(turns.slices[0].outer)[turns.slices[0].axis]
        return replace(turns, count=length)
    if turns.count is None:
        raise at.refusal(
            "is known for loops that end by their count alone: have `M` a constant, and the "
            "condition true before the loop and in each turn. Where data decide how far to go, run "
            "to the most there may be, and have turns behind the end change nothing (`Where`)"
        )
    numbers = Inline(np.arange(turns.count))
    whole = at.tape.hold(f"{at.node.writes[0]}.turns", numbers)
    return replace(turns, slices=(replace(turns.slices[0], outer=whole),))


@dataclass(frozen=True, slots=True)
class _Way:
    """What gradients go through a loop.

    Attributes:
        turns: The loop.
        places: States that lead back to something wanted.
        carried: Gradients of what these are after the last turn.
        stacked: Elements that have a gradient, and that.
        captures: Captures whose gradients are wanted.
        sliced: Slices whose gradients are.
    """

    turns: Turns
    places: tuple[int, ...]
    carried: tuple[str, ...]
    stacked: tuple[tuple[Lane, str], ...]
    captures: tuple[str, ...]
    sliced: tuple[Lane, ...]

    @classmethod
    def of(cls, at: GradientContext, turns: Turns) -> "_Way":
        count = len(turns.starts)
        captures = at.captures([turns.body])
        sliced = tuple([lane for lane in turns.slices if lane.outer in at.wanted])
        starts = zip(turns.states, turns.starts, strict=True)
        wanted = {name for name, start in starts if start in at.wanted}
        places = _moving(turns, wanted | {*captures, *(lane.inner for lane in sliced)})
        gradients = (*at.gradients, *[""] * count)
        stacked = zip(turns.elements, gradients[count:], strict=False)
        return cls(
            turns,
            places,
            tuple([gradients[place] or _zeros(at, turns.starts[place]) for place in places]),
            tuple([(lane, gradient) for lane, gradient in stacked if gradient]),
            captures,
            sliced,
        )

    @property
    def starts(self) -> list[str]:
        """What the states on the way are before the first turn."""
        return [self.turns.starts[place] for place in self.places]

    def path(self, at: GradientContext, gradient_path: GradientPath) -> Graph:
        """One turn back: gradients of states, of captures and of slices."""
        body = self.turns.body
        ends = [*(body.outputs[p] for p in self.places), *(lane.inner for lane, _ in self.stacked)]
        states = [body.inputs[place] for place in self.places]
        wanted = [*states, *self.captures, *(lane.inner for lane in self.sliced)]
        return gradient_path(at.within(body), [(name, f"d({name})") for name in ends], wanted)


def _moving(turns: Turns, wanted: set[str]) -> tuple[int, ...]:
    """States that depend on something wanted, be it by way of earlier turns."""
    while True:
        reached = leading_through(turns.body, wanted)
        pairs = zip(turns.states, turns.body.outputs, strict=False)
        found = {state for state, result in pairs if result in reached}
        if found <= wanted:
            return tuple([p for p, state in enumerate(turns.states) if state in wanted])
        wanted = wanted | found


def _saved(at: GradientContext, turns: Turns, made: Graph) -> list[Lane]:
    """States that a turn back reads, which the forward node stacks from now on."""
    read, first, count = made.used, turns.node.writes[0], turns.count
    assert count is not None
    saved = []
    for state, start in zip(turns.states, turns.starts, strict=True):
        if state in read:
            dtype, shape = at.type(start)
            saved.append(Lane(state, at.tape.define(f"{first}.{state}", (dtype, (count, *shape)))))
    if saved:
        at.tape.change(turns.node, turns.saving(saved))
    return [replace(lane, is_backward=True) for lane in saved]


def _slices(turns: Turns, made: Graph) -> list[Lane]:
    """Slices that a turn back reads, one at least: they count the turns."""
    read = made.used
    found = [lane for lane in turns.slices if lane.inner in read] or turns.slices[:1]
    return [replace(lane, is_backward=not lane.is_backward) for lane in found]


def _with_sums(graph: Graph, places: range) -> tuple[Graph, list[str]]:
    """The graph with some outputs added to new inputs, and what these are called."""
    names, outputs, values = NewNames(graph), list(graph.outputs), {**graph.values}
    nodes, sums = list(graph.nodes), []
    for place in places:
        added = outputs[place]
        before, total = (names.new(f"{added}.{each}") for each in ("before", "sum"))
        values.update({name: replace(graph.value(added), name=name) for name in (before, total)})
        nodes.append(Node(total, "Add", (before, added), (total,), version=OPSET))
        sums.append(before)
        outputs[place] = total
    changed = replace(
        graph,
        inputs=(*graph.inputs, *sums),
        outputs=tuple(outputs),
        nodes=tuple(nodes),
        values=values,
    )
    return changed, sums


def _zeros(at: GradientContext, name: str) -> str:
    dtype, shape = at.type(name)
    return at.tape.filled(0.0, dtype, shape)
