"""Lowers repeated layers once, and replays the added steps under other names.

    layer 0    is lowered node by node, and the steps that this adds are recorded
    layer 1    gets the same steps on other slots if its inputs have the same layouts
    ...

If a layer's inputs have other layouts, or lowering adds more than native steps, the next layer is
lowered node by node.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from tightship.engine.lower.steps.builder import Builder
from tightship.engine.lower.steps.records import Records
from tightship.engine.program.program import (
    LoweredStep,
    NativeWork,
    Operand,
    PrimitiveWork,
    Sharing,
    Slot,
    Space,
    Work,
)
from tightship.graph.equal_runs import LayerRun

NAMED = frozenset(
    {"Gather", "GatherElements", "GatherND", "ReverseSequence", "Scatter", "ScatterElements",
     "ScatterND"}
)  # fmt: skip
"""Operators whose kernels contain the name of their node, for messages, and are made for one."""


def lower_layers(builder: Builder, repeat: LayerRun, lower: Callable[[int], None]) -> None:
    """Lower all layers of a repeat; `lower` lowers the node at one position."""
    model: Layer | None = None
    for layer in range(len(repeat.values)):
        if model is not None and model.again(layer):
            continue
        start = _Start.of(builder, repeat, layer)
        first = repeat.start + layer * repeat.period
        for position in range(first, first + repeat.period):
            lower(position)
        model = None if start is None else _lowered(start)


@dataclass(frozen=True, slots=True)
class _Standing:
    """Layout and lifetime of a value before a layer that reads it."""

    home: Operand
    slot_bytes: int
    dies_at: int
    """Nodes from the layer's first to the last that reads its bytes, at most a period."""
    copies: tuple[Operand, ...]

    def is_like(self, other: "_Standing") -> bool:
        """Whether the two differ in nothing but addresses."""
        home, twin = self.home, other.home
        return (
            home.space is twin.space
            and home.dtype is twin.dtype
            and home.shape == twin.shape
            and home.desc == twin.desc
            and home.offset_bytes == twin.offset_bytes
            and self.slot_bytes == other.slot_bytes
            and self.dies_at == other.dies_at
            and [copy.desc for copy in self.copies] == [copy.desc for copy in other.copies]
        )


@dataclass(frozen=True, slots=True)
class _Start:
    """State of the builder before a layer is lowered."""

    builder: Builder
    repeat: LayerRun
    layer: int
    standings: tuple[_Standing, ...]
    """States of the values that enter the layer."""
    counts: tuple[int, ...]
    steps: int
    slots: int
    homes: int
    names: dict[int, int]
    """Number of values in each slot that enters."""

    @classmethod
    def of(cls, builder: Builder, repeat: LayerRun, layer: int) -> "_Start | None":
        """Record the state; None if a value enters that is an object."""
        standings = _standings(builder, repeat, layer)
        if standings is None:
            return None
        records = builder.records
        slots = {standing.home.slot for standing in standings}
        return cls(
            builder, repeat, layer, standings, _counts(records), len(records.steps),
            len(records.slots), len(records.homes),
            {slot: len(records.names.get(slot, ())) for slot in slots},
        )  # fmt: skip


def _counts(records: Records) -> tuple[int, ...]:
    """Count the records that lowering a layer must not change."""
    return len(records.added), len(records.objects), len(records.deferred)


def _standings(builder: Builder, repeat: LayerRun, layer: int) -> tuple[_Standing, ...] | None:
    records, values = builder.records, repeat.values[layer]
    first = repeat.start + layer * repeat.period
    found = []
    for name in (values[place] for place in repeat.entering):
        home = records.homes.get(name)
        if home is None or home.space not in (Space.ARENA, Space.EXTERNAL):
            return None
        copies = tuple(records.copies.get(name, ()))
        size = records.slots[home.slot].size_bytes
        found.append(_Standing(home, size, _dies_at(builder, home, repeat, first), copies))
    return tuple(found)


def _dies_at(builder: Builder, home: Operand, repeat: LayerRun, first: int) -> int:
    graph, last = builder.graph, -1
    for name in builder.records.names.get(home.slot, ()):
        if name in graph.outputs:
            return repeat.period
        last = max(last, graph.reads.get(name, (-1,))[-1] - first)
    return max(-1, min(last, repeat.period))


@dataclass(frozen=True, slots=True)
class Layer:
    """Records that lowering a layer added.

    Attributes:
        start: State before it.
        steps: Steps added.
        slots: Slots added.
        operands: Distinct operands of its steps and homes of its values.
        texts: Names among these, each with the index of the value or node that it begins with, and
            its suffix.
        homes: Indices of values, and their homes.
        names: Slots, and the indices of the values added to them.
        copies: Indices of values, and their copies in other layouts.
    """

    start: _Start
    steps: tuple[LoweredStep, ...]
    slots: tuple[Slot, ...]
    operands: tuple[Operand, ...]
    texts: tuple[tuple[str, int, str], ...]
    homes: tuple[tuple[int, Operand], ...]
    names: tuple[tuple[int, tuple[int, ...]], ...]
    copies: tuple[tuple[int, tuple[Operand, ...]], ...]

    def again(self, layer: int) -> bool:
        """Replay the steps for another layer; return False if its lowering would differ."""
        builder, repeat = self.start.builder, self.start.repeat
        slots = self._slots_of(layer)
        if slots is None or not self._has_like_constants(layer):
            return False
        named = (*repeat.values[layer], *repeat.nodes[layer])
        names = {text: named[place] + suffix for text, place, suffix in self.texts}
        records = builder.records
        moved = self._moved(names, slots)
        records.slots.extend([Slot(names[s.name], s.size_bytes, s.external) for s in self.slots])
        records.steps.extend([_moved_step(step, names, slots, moved) for step in self.steps])
        for place, home in self.homes:
            records.homes.setdefault(named[place], moved[id(home)])
        for slot, places in self.names:
            records.names.setdefault(slots[slot], []).extend([named[place] for place in places])
        for place, copies in self.copies:
            records.copies.setdefault(named[place], []).extend([moved[id(c)] for c in copies])
        return True

    def _slots_of(self, layer: int) -> dict[int, int] | None:
        """Map slots of this layer to another's; None if a value enters in another layout."""
        start = self.start
        others = _standings(start.builder, start.repeat, layer)
        if others is None:
            return None
        slots: dict[int, int] = {}
        for standing, other in zip(start.standings, others, strict=True):
            if standing.home is not other.home and not standing.is_like(other):
                return None
            pairs = zip((standing.home, *standing.copies), (other.home, *other.copies),
                        strict=False)  # fmt: skip
            if any(slots.setdefault(a.slot, b.slot) != b.slot for a, b in pairs):
                return None
        if len(set(slots.values())) < len(slots):
            return None
        offset = len(start.builder.records.slots) - start.slots
        slots.update({slot: slot + offset for slot in
                      range(start.slots, start.slots + len(self.slots))})  # fmt: skip
        return slots

    def _has_like_constants(self, layer: int) -> bool:
        repeat, weights = self.start.repeat, self.start.builder.records.weights
        values, others = repeat.values[self.start.layer], repeat.values[layer]
        return all(weights.are_alike(values[place], others[place]) for place in repeat.constants)

    def _moved(self, names: dict[str, str], slots: dict[int, int]) -> dict[int, Operand]:
        """Map operands of this layer, by identity, to those of another."""
        moved: dict[int, Operand] = {}
        weights = self._weights_of(names)
        for operand in self.operands:
            name, space = names[operand.name], operand.space
            slot = (weights if space is Space.WEIGHTS else slots)[operand.slot]
            moved[id(operand)] = Operand(
                name, space, slot, operand.dtype, operand.shape, operand.desc, operand.offset_bytes
            )
        return moved

    def _weights_of(self, names: dict[str, str]) -> dict[int, int]:
        """Map packed constants of this layer to those of another, added in the same order."""
        builder = self.start.builder
        constants, records = builder.graph.constants, builder.records
        found: dict[int, int] = {}
        for index in sorted({o.slot for o in self.operands if o.space is Space.WEIGHTS}):
            name = records.weights.weights[index].name
            twin = names[name]
            home = records.homes.get(twin)
            if twin == name:
                found[index] = index
            elif records.weights.weights[index].source is None and home is not None:
                found[index] = home.slot
            else:
                pair = constants[name], constants[twin]
                found[index] = records.weights.twin(index, twin, pair)
        return found


def _moved_step(
    step: LoweredStep, names: dict[str, str], slots: dict[int, int], moved: dict[int, Operand]
) -> LoweredStep:
    work: Work = step.work
    if isinstance(work, PrimitiveWork):
        work = PrimitiveWork(work.desc, tuple([(n, moved[id(o)]) for n, o in work.arguments]))
    elif isinstance(work, NativeWork):
        kernel = work.kernel if work.make is None else work.make(names[step.name])
        operands = tuple([moved[id(operand)] for operand in work.operands])
        work = NativeWork(kernel, operands, work.make)
    return LoweredStep(
        names[step.name], step.operator, step.kernel, step.implementation,
        tuple([moved[id(operand)] for operand in step.reads]),
        tuple([moved[id(operand)] for operand in step.writes]),
        work, step.scratch_bytes,
        tuple([Sharing(slots[s.output], slots[s.input], s.kind) for s in step.sharing]),
    )  # fmt: skip


def _lowered(start: _Start) -> Layer | None:
    """Record what lowering has added since `start`; None if it cannot be replayed."""
    repeat, records = start.repeat, start.builder.records
    values = repeat.values[start.layer]
    places = {name: place for place, name in enumerate((*values, *repeat.nodes[start.layer]))}
    steps = tuple(records.steps[start.steps :])
    if _counts(records) != start.counts or not all(map(_is_repeatable, steps)):
        return None
    homes = list(records.homes.items())[start.homes :]
    copies = _new_copies(start)
    if copies is None or not all(name in places for name, _ in homes):
        return None
    slots = tuple(records.slots[start.slots :])
    names = _new_names(start, places)
    operands = {id(o): o for step in steps for o in (*step.reads, *step.writes, *_bound(step.work))}
    operands |= {id(home): home for _, home in homes}
    operands |= {id(copy): copy for _, some in copies for copy in some}
    texts = _texts((*operands.values(), *steps, *slots), places)
    if names is None or texts is None or not all(_is_placed(start, o) for o in operands.values()):
        return None
    return Layer(
        start, steps, slots, tuple(operands.values()), texts,
        tuple((places[name], home) for name, home in homes), names, copies,
    )  # fmt: skip


def _is_placed(start: _Start, operand: Operand) -> bool:
    """Whether another layer has a counterpart: a constant, or bytes that entered or are new."""
    if operand.space is Space.WEIGHTS:
        weights = start.builder.records.weights.weights
        return weights[operand.slot].name in start.repeat.values[start.layer]
    return operand.slot >= start.slots or any(
        operand.slot == each.slot
        for standing in start.standings
        for each in (standing.home, *standing.copies)
    )


def _is_repeatable(step: LoweredStep) -> bool:
    return isinstance(step.work, PrimitiveWork) or (
        isinstance(step.work, NativeWork) and step.operator not in NAMED
    )


def _bound(work: Work) -> tuple[Operand, ...]:
    if isinstance(work, PrimitiveWork):
        return tuple([operand for _, operand in work.arguments])
    assert isinstance(work, NativeWork)
    return work.operands


def _new_copies(start: _Start) -> tuple[tuple[int, tuple[Operand, ...]], ...] | None:
    """List copies added; None if one is of a value that layers share."""
    repeat, copies = start.repeat, start.builder.records.copies
    before = {
        place: len(standing.copies)
        for place, standing in zip(repeat.entering, start.standings, strict=True)
    }
    found = []
    others = repeat.values[start.layer - 1]
    for place, name in enumerate(repeat.values[start.layer]):
        new = tuple(copies.get(name, ())[before.get(place, 0) :])
        if new and others[place] == name:
            return None
        if new:
            found.append((place, new))
    return tuple(found)


def _new_names(
    start: _Start, places: dict[str, int]
) -> tuple[tuple[int, tuple[int, ...]], ...] | None:
    """List values added to slots; None if one does not belong to the layer."""
    records = start.builder.records
    counts = start.names | dict.fromkeys(range(start.slots, len(records.slots)), 0)
    found = []
    for slot, count in counts.items():
        new = records.names.get(slot, [])[count:]
        if not all(name in places for name in new):
            return None
        if new:
            found.append((slot, tuple([places[name] for name in new])))
    return tuple(found)


def _texts(
    named: Iterable[Operand | LoweredStep | Slot], places: dict[str, int]
) -> tuple[tuple[str, int, str], ...] | None:
    """Split names into the value or node that they begin with and a suffix; None if impossible."""
    found = []
    for text in dict.fromkeys(each.name for each in named):
        head = text
        while head not in places and "." in head:
            head = head[: head.rindex(".")]
        if head not in places:
            return None
        found.append((text, places[head], text[len(head) :]))
    return tuple(found)
