"""Stores values that wait for a late reader in half of their bytes.

    step 3 writes a          step 3 writes a
    step 4 reads a           step 4 reads a
    ...                      narrows a to a', of half the size; a dies
    step 90 reads a          ...
                             widens a' to a"
                             step 90 reads a", which dies

A reader is late if many steps must run after the writer and before it, in any order: which values
are stored depends on the steps alone, not on the order that a plan chooses.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType

from tightship.planner.schedule import Alias, AliasKind, Schedule, ScheduledValue, Step

LATE = 4
"""Least number of steps between the writer and a late reader, in any order."""

SUMMARY = 16
"""A value that is as many times smaller than its writer's largest operand stays as it is: sums,
statistics and other summaries, which are small and of which many numbers depend."""

NARROWS, WIDENS = -1, -2
"""Origins of added steps."""


@dataclass(frozen=True, slots=True)
class Halved:
    """A schedule with stored values.

    Attributes:
        schedule: The schedule; added values follow the given ones.
        origin: For each step the index of the given step, or `NARROWS` or `WIDENS`; steps whose
            results are cheap come several times.
    """

    schedule: Schedule
    origin: tuple[int, ...]


def halved(
    schedule: Schedule,
    candidates: Collection[int],
    cheap: Collection[int] = (),
    narrow: Mapping[int, int] = MappingProxyType({}),
) -> Halved:
    """Store values that wait for late readers in half of their bytes.

    Args:
        schedule: Values and steps.
        candidates: Indices of values that may be stored so. A value is passed over if it is
            external, a summary of what its writer reads, or if late readers share its bytes.
        cheap: Indices of values that are computed again for a late reader instead, if their
            writers read stored values, or such values, alone.
        narrow: For some candidates the value that a given step converts them to, in half of their
            bytes, which is stored then.
    """
    writer = {value: i for i, step in enumerate(schedule.steps) for value in step.writes}
    late = _late_readers(schedule, writer, frozenset(candidates) | frozenset(cheap))
    kept, again = _kept_and_again(schedule, late, candidates, cheap, narrow)
    made = _Made(schedule, list(schedule.values), writer, dict(narrow))
    for index, step in enumerate(schedule.steps):
        moved = {}
        for value in dict.fromkeys(step.reads):
            if index not in late.get(value, ()):
                continue
            if value in kept:
                moved[value] = made.widened(value, step.name)
            elif value in again:
                moved[value] = made.again(value, kept, step.name)
        made.keep(index, _reading(step, moved))
        for value in step.writes:
            if value in kept and value not in narrow:
                made.stored[value] = made.add(NARROWS, value, _narrow(schedule.values[value]), "")
    return Halved(Schedule(tuple(made.values), tuple(made.steps), schedule.outputs),
                  tuple(made.origin))  # fmt: skip


@dataclass(slots=True)
class _Made:
    """Values and steps under construction.

    Attributes:
        given: The schedule.
        values: Its values, then added ones.
        writer: Index of the given step that writes each value.
        stored: For each value that is stored so far, the value in half of its bytes.
    """

    given: Schedule
    values: list[ScheduledValue]
    writer: Mapping[int, int]
    stored: dict[int, int]
    steps: list[Step] = field(default_factory=list)
    origin: list[int] = field(default_factory=list)

    def keep(self, index: int, step: Step) -> None:
        """Append a given step."""
        self.steps.append(step)
        self.origin.append(index)

    def widened(self, value: int, reader: str) -> int:
        """Append the conversion of a stored value, and return the new value's index."""
        return self.add(WIDENS, self.stored[value], self.given.values[value], reader)

    def again(self, value: int, kept: Collection[int], reader: str) -> int:
        """Append what computes a value from those `kept` once more, and return its new index."""
        index = self.writer[value]
        source = self.given.steps[index]
        wide = {
            each: self.widened(each, source.name)
            if each in kept
            else self.again(each, kept, source.name)
            for each in dict.fromkeys(source.reads)
        }
        step = _reading(source, wide)
        found = len(self.values)
        given = self.values[value]
        name = f"{given.name}.for.{reader}"
        self.values.append(ScheduledValue(name, given.size_bytes, given.alignment))
        self.keep(index, Step(f"{step.name}.for.{reader}", step.operator, step.reads, (found,)))
        return found

    def add(self, kind: int, source: int, value: ScheduledValue, reader: str) -> int:
        """Append a conversion of `source` to a new value, and return the value's index."""
        index = len(self.values)
        name = f"{value.name}.for.{reader}" if reader else value.name
        self.values.append(ScheduledValue(name, value.size_bytes, value.alignment))
        self.steps.append(Step(name, "Cast", (source,), (index,)))
        self.origin.append(kind)
        return index


def _narrow(value: ScheduledValue) -> ScheduledValue:
    return ScheduledValue(f"{value.name}.stored", value.size_bytes // 2, value.alignment)


def _reading(step: Step, moved: Mapping[int, int]) -> Step:
    """Return a step that reads other values, and writes over these where it may."""
    if not moved:
        return step
    reads = tuple([moved.get(value, value) for value in step.reads])
    aliases = tuple([
        Alias(a.output, moved.get(a.input, a.input), a.kind, a.offset_bytes) for a in step.aliases
    ])  # fmt: skip
    return Step(step.name, step.operator, reads, step.writes, step.scratch_bytes, aliases)


def _late_readers(
    schedule: Schedule, writer: Mapping[int, int], candidates: frozenset[int]
) -> dict[int, set[int]]:
    """Return the late readers of candidates in the arena, by value."""
    before, after = _before_and_after(schedule.steps, writer)
    late: dict[int, set[int]] = {}
    for index, step in enumerate(schedule.steps):
        if any(schedule.values[value].external for value in step.writes):
            continue
        bound = {alias.input for alias in step.aliases if alias.kind is not AliasKind.IN_PLACE}
        for value in candidates.intersection(step.reads) - bound:
            start = writer.get(value)
            if start is None or schedule.values[value].external:
                continue
            if (after[start] & before[index]).bit_count() >= LATE:
                late.setdefault(value, set()).add(index)
    return late


def _kept_and_again(
    schedule: Schedule,
    late: Collection[int],
    candidates: Collection[int],
    cheap: Collection[int],
    narrow: Mapping[int, int],
) -> tuple[set[int], set[int]]:
    """Return values with late readers to store, and values to compute again of these."""
    candidates, cheap = frozenset(candidates), {*cheap}
    kept: set[int] = set()
    again: set[int] = set()
    for step in schedule.steps:
        is_cheap = len(step.writes) == 1 and step.reads and kept | again >= {*step.reads}
        for value in step.writes:
            if is_cheap and value in cheap:
                again.add(value)
            elif value in late and value in candidates and not _is_summary(schedule, step, value):
                kept.add(value)
                cheap.discard(narrow.get(value, value))
    return kept, again


def _before_and_after(
    steps: Sequence[Step], writer: Mapping[int, int]
) -> tuple[list[int], list[int]]:
    """Return the steps that must run before each step, and those that must run after, as bits."""
    sources = [
        {writer[value] for value in step.reads if writer.get(value, index) < index}
        for index, step in enumerate(steps)
    ]
    before, after = [0] * len(steps), [0] * len(steps)
    for index, found in enumerate(sources):
        for source in found:
            before[index] |= before[source] | 1 << source
    for index in reversed(range(len(steps))):
        for source in sources[index]:
            after[source] |= after[index] | 1 << index
    return before, after


def _is_summary(schedule: Schedule, step: Step, value: int) -> bool:
    sizes = [schedule.values[each].size_bytes for each in (*step.reads, *step.writes)
             if not schedule.values[each].external]  # fmt: skip
    return schedule.values[value].size_bytes * SUMMARY <= max(sizes)
