"""Gradients of loops with a known number of iterations: a Scan from the last to the first.

Each of its iterations recomputes what it reads of the forward one from the states that this started
with; only these are kept, stacked. Gradients of captures are summed on the way.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from tightship.graph.backward.gradient_context import GradientContext, GradientPath
from tightship.graph.backward.loop_iterations import (
    UNBATCHED_SCAN_VERSION,
    LoopIterations,
    ScanAxis,
    iterations_of,
    scan_attributes,
)
from tightship.graph.backward.reach import leading_through
from tightship.graph.backward.tape import OPSET
from tightship.graph.constant import Inline
from tightship.graph.ir import Graph, Node
from tightship.graph.new_names import NewNames


def differentiate_iterations(
    at: GradientContext, gradient_path: GradientPath
) -> Iterator[tuple[str, str]]:
    """Read the sliced inputs, captures, and the states at the start of each iteration."""
    way = _Way.of(at, _iterations(at))
    if not way.carried and not way.stacked:
        return
    iterations, made = way.iterations, way.path(at, gradient_path)
    given = made.inputs[len(iterations.body.inputs) :]
    carried, stacked = given[: len(way.carried)], given[len(way.carried) :]
    scan_axes = [
        *_saved(at, iterations, made),
        *_slices(iterations, made),
        *(ScanAxis(name, gradient, scan_axis.axis, not scan_axis.is_backward)
          for name, (scan_axis, gradient) in zip(stacked, way.stacked, strict=True)),
    ]  # fmt: skip
    summed, sums = _with_sums(made, range(len(carried), len(carried) + len(way.captures)))
    body = replace(summed, inputs=(*carried, *sums, *(scan_axis.inner for scan_axis in scan_axes)))
    gradients = body.outputs[len(body.outputs) - len(way.sliced) :]
    results = [
        ScanAxis(name, "", scan_axis.axis, not scan_axis.is_backward)
        for name, scan_axis in zip(gradients, way.sliced, strict=True)
    ]
    sources = [*way.starts, *way.captures, *(scan_axis.outer for scan_axis in way.sliced)]
    found = at.tape.write(
        "Scan",
        (*way.carried, *(_zeros(at, name) for name in way.captures), *(x.outer for x in scan_axes)),
        [at.type(name) if name in at.wanted else None for name in sources],
        scan_attributes(body, scan_axes, results),
    )
    yield from ((name, gradient) for name, gradient in zip(sources, found, strict=True) if gradient)


def _iterations(at: GradientContext) -> LoopIterations:
    """Return the node's iterations, whose numbers are a constant.

    Raises:
        GraphError: Data may decide how many there are, or it is a Scan of a batch.
    """
    if at.node.operator == "Scan" and at.node.version < UNBATCHED_SCAN_VERSION:
        raise at.refusal("is not known, for it has a batch axis: convert the model to opset 9")
    iterations = iterations_of(at.node, at.tape.graph.value, at.tape.constant)
    if at.node.operator == "Scan":
        length = at.shape(iterations.slices[0].outer)[iterations.slices[0].axis]
        return replace(iterations, count=length)
    if iterations.count is None:
        raise at.refusal(
            "is known for loops that end by their count alone: have `M` a constant, and the "
            "condition true before the loop and in each iteration. Where data decide how far to "
            "go, run to the most there may be, and have iterations behind the end change nothing "
            "(`Where`)"
        )
    numbers = Inline(np.arange(iterations.count))
    whole = at.tape.hold(f"{at.node.writes[0]}.iterations", numbers)
    return replace(iterations, slices=(replace(iterations.slices[0], outer=whole),))


@dataclass(frozen=True, slots=True)
class _Way:
    """Gradients that pass through a loop.

    Attributes:
        iterations: Loop as its iterations.
        places: Indices of states that lead back to a wanted value.
        carried: Gradients of these after the last iteration.
        stacked: Elements that have a gradient, with it.
        captures: Captures whose gradients are wanted.
        sliced: Slices whose gradients are wanted.
    """

    iterations: LoopIterations
    places: tuple[int, ...]
    carried: tuple[str, ...]
    stacked: tuple[tuple[ScanAxis, str], ...]
    captures: tuple[str, ...]
    sliced: tuple[ScanAxis, ...]

    @classmethod
    def of(cls, at: GradientContext, iterations: LoopIterations) -> "_Way":
        count = len(iterations.starts)
        captures = at.captures([iterations.body])
        sliced = tuple(
            [scan_axis for scan_axis in iterations.slices if scan_axis.outer in at.wanted]
        )
        starts = zip(iterations.states, iterations.starts, strict=True)
        wanted = {name for name, start in starts if start in at.wanted}
        places = _moving(
            iterations, wanted | {*captures, *(scan_axis.inner for scan_axis in sliced)}
        )
        gradients = (*at.gradients, *[""] * count)
        stacked = zip(iterations.elements, gradients[count:], strict=False)
        return cls(
            iterations,
            places,
            tuple([gradients[place] or _zeros(at, iterations.starts[place]) for place in places]),
            tuple([(scan_axis, gradient) for scan_axis, gradient in stacked if gradient]),
            captures,
            sliced,
        )

    @property
    def starts(self) -> list[str]:
        """States on the path before the first iteration."""
        return [self.iterations.starts[place] for place in self.places]

    def path(self, at: GradientContext, gradient_path: GradientPath) -> Graph:
        """Make one backward iteration: gradients of states, of captures and of slices."""
        body = self.iterations.body
        ends = [
            *(body.outputs[p] for p in self.places),
            *(scan_axis.inner for scan_axis, _ in self.stacked),
        ]
        states = [body.inputs[place] for place in self.places]
        wanted = [*states, *self.captures, *(scan_axis.inner for scan_axis in self.sliced)]
        return gradient_path(at.within(body), [(name, f"d({name})") for name in ends], wanted)


def _moving(iterations: LoopIterations, wanted: set[str]) -> tuple[int, ...]:
    """Find states that depend on a wanted value, also through earlier iterations."""
    while True:
        reached = leading_through(iterations.body, wanted)
        pairs = zip(iterations.states, iterations.body.outputs, strict=False)
        found = {state for state, result in pairs if result in reached}
        if found <= wanted:
            return tuple([p for p, state in enumerate(iterations.states) if state in wanted])
        wanted = wanted | found


def _saved(at: GradientContext, iterations: LoopIterations, made: Graph) -> list[ScanAxis]:
    """Save the states that a backward iteration reads, stacked by the forward node."""
    read, first, count = made.used, iterations.node.writes[0], iterations.count
    assert count is not None
    saved = []
    for state, start in zip(iterations.states, iterations.starts, strict=True):
        if state in read:
            dtype, shape = at.type(start)
            saved.append(
                ScanAxis(state, at.tape.define(f"{first}.{state}", (dtype, (count, *shape))))
            )
    if saved:
        at.tape.change(iterations.node, iterations.saving(saved))
    return [replace(scan_axis, is_backward=True) for scan_axis in saved]


def _slices(iterations: LoopIterations, made: Graph) -> list[ScanAxis]:
    """Return slices that a backward iteration reads, at least one, which sets the count."""
    read = made.used
    found = [
        scan_axis for scan_axis in iterations.slices if scan_axis.inner in read
    ] or iterations.slices[:1]
    return [replace(scan_axis, is_backward=not scan_axis.is_backward) for scan_axis in found]


def _with_sums(graph: Graph, places: range) -> tuple[Graph, list[str]]:
    """Add some outputs to new inputs; return the graph and the inputs' names."""
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
