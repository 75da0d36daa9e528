"""Makes a schedule in which some steps run a second time, just before their results are needed."""

from collections.abc import Collection
from dataclasses import replace

from tightship.planner.schedule import BINDING, AliasKind, Schedule, Step


def rematerialized(
    schedule: Schedule, turn: int, again: Collection[int]
) -> tuple[Schedule, tuple[int, ...]]:
    """Insert clones of the steps `again` after the step `turn`.

    A step after the turn that reads an output of a cloned step reads the clone's output instead;
    the clone runs right before the first such reader. Steps that overwrite bytes for good run after
    the clones have read these bytes.

    Args:
        schedule: Values and steps.
        turn: Index of the last step before clones may run; -1 for none.
        again: Indices of steps up to the turn to run a second time.

    Returns:
        The schedule, and for each of its steps the index of the original step.
    """
    writer = _Writer(schedule, turn, again)
    return writer.schedule(), tuple(writer.origin)


class _Writer:
    """Builds the new schedule step by step."""

    def __init__(self, schedule: Schedule, turn: int, again: Collection[int]) -> None:
        self.given = schedule
        self.values = list(schedule.values)
        self.steps: list[Step] = []
        self.origin: list[int] = []
        self._again = frozenset(again)
        self._made: dict[int, int] = {}
        self._names = {value.name for value in schedule.values}
        self._early = {
            value: index
            for index, step in enumerate(schedule.steps[: turn + 1])
            for value in step.writes
        }
        self._read = _read_but_by_ties(schedule)
        tied: list[int] = []
        for index, step in enumerate(schedule.steps):
            if index > turn:
                for need in self._needs(step):
                    self._put(need, self._clone(schedule.steps[need]))
            if index > turn and self._is_last(step):
                tied.append(index)
            else:
                self._put(index, self._renamed(step) if index > turn else step)
        self._put_tied(tied)

    def schedule(self) -> Schedule:
        """Return the schedule built so far."""
        return replace(self.given, values=tuple(self.values), steps=tuple(self.steps))

    def _put(self, index: int, step: Step) -> None:
        self.steps.append(step)
        self.origin.append(index)

    def _is_last(self, step: Step) -> bool:
        """Whether a step overwrites bytes for good, and only such steps read its outputs."""
        return _is_tied(step) and self._read.isdisjoint(step.writes)

    def _needs(self, step: Step) -> list[int]:
        """Return steps that must run again before a step, in order, without those that have."""
        found: set[int] = set()
        open_values = list(step.reads)
        while open_values:
            value = open_values.pop()
            index = self._early.get(value)
            if index in self._again and index not in found and value not in self._made:
                assert index is not None
                found.add(index)
                open_values.extend(self.given.steps[index].reads)
        return [index for index in sorted(found) if self._is_changed(index, found)]

    def _is_changed(self, index: int, found: set[int]) -> bool:
        """Whether a step computes new bytes, or is a view of recomputed ones."""
        step = self.given.steps[index]
        if not any(alias.kind in BINDING for alias in step.aliases):
            return True
        sources = {alias.input for alias in step.aliases if alias.kind in BINDING}
        return any(
            source in self._made
            or (self._early.get(source) in found and self._is_changed(self._early[source], found))
            for source in sources
        )

    def _clone(self, step: Step) -> Step:
        renamed = self._renamed(step)
        for value in step.writes:
            self._made[value] = len(self.values)
            self.values.append(replace(self.values[value], name=self._name(value)))
        writes = tuple(self._made[value] for value in step.writes)
        swap = dict(zip(step.writes, writes, strict=True))
        aliases = tuple(replace(a, output=swap[a.output]) for a in renamed.aliases)
        name = self.values[writes[0]].name if writes else f"{step.name}.again"
        return replace(renamed, name=name, writes=writes, aliases=aliases)

    def _name(self, value: int) -> str:
        name = f"{self.values[value].name}.again"
        while name in self._names:
            name += "'"
        self._names.add(name)
        return name

    def _renamed(self, step: Step) -> Step:
        made = self._made
        if made.keys().isdisjoint(step.reads):
            return step
        return replace(
            step,
            reads=tuple(made.get(value, value) for value in step.reads),
            aliases=tuple(replace(a, input=made.get(a.input, a.input)) for a in step.aliases),
        )

    def _put_tied(self, tied: list[int]) -> None:
        """Insert steps that overwrite bytes right after the last step that uses these bytes."""
        last: dict[int, int] = {}
        for place, step in enumerate(self.steps):
            last.update(dict.fromkeys((*step.reads, *step.writes), place))
        behind: dict[int, list[int]] = {}
        for index in tied:
            step = self._renamed(self.given.steps[index])
            place = max((last.get(value, 0) for value in step.reads), default=0)
            behind.setdefault(place, []).append(index)
            last.update(dict.fromkeys(step.writes, place))
        steps, origin = self.steps, self.origin
        self.steps, self.origin = [], []
        for place, (step, index) in enumerate(zip(steps, origin, strict=True)):
            self._put(index, step)
            for each in behind.get(place, ()):
                self._put(each, self._renamed(self.given.steps[each]))


def _is_tied(step: Step) -> bool:
    return any(alias.kind is AliasKind.TIED for alias in step.aliases)


def _read_but_by_ties(schedule: Schedule) -> set[int]:
    """Return values that some step needs for more than overwriting bytes for good."""
    found: set[int] = set()
    for step in reversed(schedule.steps):
        if not _is_tied(step) or not found.isdisjoint(step.writes):
            found.update(step.reads)
    return found
