"""Takes the network of a plan from its picture: nodes, values, and the bytes that they hold."""

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, replace

from tightship.view.picture import Picture, Rectangle, Step

OUTSIDE = -1
"""Offset of a value outside the arena."""


@dataclass(frozen=True, slots=True)
class Value:
    """Value that steps pass on, or scratch of one step.

    Attributes:
        name: Its name.
        kind: `activation`, `scratch`, or for bytes outside the arena `input`, `output` or
            `outside`.
        size_bytes: Bytes that it holds; 0 if they are unknown.
        offset_bytes: Offset in the arena, or `OUTSIDE`.
        start_step: Step that writes it first; 0 for an input.
        stop_step: Step after the last one during which it holds its bytes.
        shares_with: Value whose bytes it took over, or shows; empty for fresh bytes.
        type: Shape and type, if known.
        makers: Nodes that write it, in order; an input is a node of its own.
        readers: Steps that read it, in order.
    """

    name: str
    kind: str
    size_bytes: int
    offset_bytes: int
    start_step: int
    stop_step: int
    shares_with: str = ""
    type: str = ""
    makers: tuple[int, ...] = ()
    readers: tuple[int, ...] = ()

    @property
    def end_bytes(self) -> int:
        """Offset after its last byte."""
        return self.offset_bytes + self.size_bytes

    @property
    def is_planned(self) -> bool:
        """Whether it lies in the arena and holds bytes there."""
        return self.offset_bytes != OUTSIDE and self.size_bytes > 0


@dataclass(frozen=True, slots=True)
class Network:
    """Nodes and values of a plan.

    Nodes are numbered: steps first, in the order of the plan, then inputs.

    Attributes:
        picture: The plan.
        values: Values that steps write, inputs, and scratch.
        inputs: Values of the nodes after the steps.
        reads: Values that each step reads.
        writes: Values that each step writes, the largest first.
        scratch: Value of each step's scratch, or -1.
        edges: Node, node and value, where the second node reads what the first one wrote.
    """

    picture: Picture
    values: tuple[Value, ...]
    inputs: tuple[int, ...]
    reads: tuple[tuple[int, ...], ...]
    writes: tuple[tuple[int, ...], ...]
    scratch: tuple[int, ...]
    edges: tuple[tuple[int, int, int], ...]

    @property
    def steps(self) -> tuple[Step, ...]:
        """Return the steps of the plan."""
        return self.picture.steps

    @property
    def node_count(self) -> int:
        """Return the number of steps and inputs."""
        return len(self.steps) + len(self.inputs)

    def main_value(self, node: int) -> int:
        """Return the value that a node is drawn for, -1 if it writes none."""
        if node >= len(self.steps):
            return self.inputs[node - len(self.steps)]
        return self.writes[node][0] if self.writes[node] else -1


def has_network(picture: Picture) -> bool:
    """Whether it is known which values the steps of a plan read and write."""
    return any(step.writes for step in picture.steps)


def network_of(picture: Picture) -> Network:
    """Connect the steps of a plan by the values that they read and write."""
    return _Reading(picture).network()


class _Reading:
    """Values found so far, while the steps are read in order."""

    def __init__(self, picture: Picture) -> None:
        self.picture = picture
        self.values: list[Value] = []
        self.makers: defaultdict[int, list[int]] = defaultdict(list)
        self.readers: defaultdict[int, list[int]] = defaultdict(list)
        self.inputs: list[int] = []
        self.latest: dict[str, int] = {}
        self.rectangles: defaultdict[str, list[Rectangle]] = defaultdict(list)
        for rectangle in picture.rectangles:
            if rectangle.kind != "scratch":
                self.rectangles[rectangle.name].append(rectangle)

    def network(self) -> Network:
        edges: list[tuple[int, int, int]] = []
        reads: list[tuple[int, ...]] = []
        writes: list[tuple[int, ...]] = []
        for index, step in enumerate(self.picture.steps):
            known = [value for value in map(self._read, step.reads) if value is not None]
            for value in known:
                self.readers[value].append(index)
                edges += [(maker, index, value) for maker in self.makers[value]]
            reads.append(tuple(known))
            writes.append(self._written(index, step.writes))
        scratch = self._scratch()
        values = tuple([
            replace(value, makers=tuple(self.makers[index]), readers=tuple(self.readers[index]))
            for index, value in enumerate(self.values)
        ])  # fmt: skip
        return Network(
            self.picture, values, tuple(self.inputs), tuple(reads), tuple(writes), scratch,
            tuple([edge for edge in edges if edge[0] != edge[1]]),
        )  # fmt: skip

    def _read(self, name: str) -> int | None:
        """Return the value that has a name; None for a constant, or a weight that is updated."""
        if name not in self.latest and name in self.picture.inputs:
            type_ = self.picture.inputs[name]
            value = Value(name, "input", 0, OUTSIDE, 0, self.picture.step_count, type=type_)
            self.latest[name] = self._add(value)
            self.makers[self.latest[name]] = [len(self.picture.steps) + len(self.inputs)]
            self.inputs.append(self.latest[name])
        return self.latest.get(name)

    def _written(self, step: int, names: Iterable[str]) -> tuple[int, ...]:
        found = []
        for name in names:
            known = self.latest.get(name)
            if known is None or not self._lasts(known, step):
                known = self.latest[name] = self._add(self._value(name, step))
            self.makers[known].append(step)
            found.append(known)
        return tuple(sorted(found, key=lambda value: -self.values[value].size_bytes))

    def _lasts(self, value: int, step: int) -> bool:
        """Whether a step writes a further part of a value rather than another one of its name."""
        found = self.values[value]
        return found.kind != "input" and found.start_step < step < found.stop_step

    def _value(self, name: str, step: int) -> Value:
        rectangles = self.rectangles.get(self.picture.views.get(name, name), ())
        live = [r for r in rectangles if r.is_live(step)]
        if not live:
            kind = "output" if name in self.picture.outputs else "outside"
            type_ = self.picture.outputs.get(name, "")
            return Value(name, kind, 0, OUTSIDE, step, self.picture.step_count, type=type_)
        found = live[-1]
        shares = found.shares_with or "" if found.name == name else found.name
        return Value(
            name, found.kind, found.size_bytes, found.offset_bytes, step, found.stop_step, shares,
            found.type,
        )  # fmt: skip

    def _scratch(self) -> tuple[int, ...]:
        found = [-1] * len(self.picture.steps)
        for rectangle in self.picture.rectangles:
            step = rectangle.start_step
            if rectangle.kind == "scratch" and 0 <= step < len(found):
                size, offset = rectangle.size_bytes, rectangle.offset_bytes
                value = Value(rectangle.name, "scratch", size, offset, step, rectangle.stop_step)
                found[step] = self._add(value)
        return tuple(found)

    def _add(self, value: Value) -> int:
        self.values.append(value)
        return len(self.values) - 1
