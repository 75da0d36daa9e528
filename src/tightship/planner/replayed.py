"""Makes a schedule in which steps run in a given order, some of them several times."""

from collections.abc import Collection, Sequence
from dataclasses import replace

from tightship.planner.schedule import BINDING, AliasKind, Schedule, Step


def replayed(
    schedule: Schedule, runs: Sequence[int], turn: int
) -> tuple[Schedule, tuple[int, ...]]:
    """Run steps in the order `runs`; a step reads what was written last.

    A run whose results no later run reads is left out, unless it is the only one of its step.
    Outputs of the schedule are those of the first run of their step. Steps behind the turn that
    overwrite bytes for good run after the last run that reads these bytes.

    Args:
        schedule: Values and steps.
        runs: Indices of steps in the order in which they run, each at least once.
        turn: Index of the last step that stays where it is if it overwrites bytes.

    Returns:
        The schedule, and for each of its steps the index of the original step.
    """
    read = _read_but_by_ties(schedule)
    tied = {
        index
        for index, step in enumerate(schedule.steps)
        if index > turn and _is_tied(step) and read.isdisjoint(step.writes)
    }
    writer = _Writer(schedule)
    for index in _needed(schedule, [run for run in runs if run not in tied]):
        writer.put(index)
    writer.put_tied(sorted(tied, key=list(dict.fromkeys(runs)).index))
    return writer.schedule(), tuple(writer.origin)


def _needed(schedule: Schedule, runs: Sequence[int]) -> list[int]:
    """Leave out runs that show the same bytes again, or whose results no later run reads."""
    fixed = bound_outputs(schedule)
    made: dict[int, int] = {}  # the run that has written each value last
    reads: list[list[int]] = []
    kept = [True] * len(runs)
    shown: dict[int, list[int]] = {}
    for place, index in enumerate(runs):
        step = schedule.steps[index]
        sources = [made[value] for value in step.reads if value in made]
        reads.append(sources)
        is_view = any(alias.kind in BINDING for alias in step.aliases)
        if is_view and shown.get(index) == sources:
            kept[place] = False
            continue
        shown[index] = sources
        for value in step.writes:
            if value not in fixed or value not in made:
                made[value] = place
    first = {index: place for place, index in reversed(list(enumerate(runs)))}
    wanted, covered = [False] * len(runs), set[int]()
    for place in range(len(runs) - 1, -1, -1):
        index = runs[place]
        writes = schedule.steps[index].writes
        is_first = first[index] == place
        must = is_first and (index not in covered or not fixed.isdisjoint(writes))
        kept[place] &= wanted[place] or must
        if kept[place]:
            covered.add(index)
            for source in reads[place]:
                wanted[source] = True
    return [index for index, is_kept in zip(runs, kept, strict=True) if is_kept]


class _Writer:
    """Builds the new schedule run by run."""

    def __init__(self, schedule: Schedule) -> None:
        self.given = schedule
        self.values = list(schedule.values)
        self.steps: list[Step] = []
        self.origin: list[int] = []
        self._latest: dict[int, int] = {}
        self._runs: dict[int, int] = {}
        self._names = {value.name for value in schedule.values}
        self._fixed = bound_outputs(schedule)

    def schedule(self) -> Schedule:
        """Return the schedule built so far."""
        return replace(self.given, values=tuple(self.values), steps=tuple(self.steps))

    def put(self, index: int) -> None:
        """Append a run of a step; its first run writes the values of the original."""
        step = self._renamed(self.given.steps[index])
        number = self._runs[index] = self._runs.get(index, 0) + 1
        self._add(index, step if number == 1 else self._again(step, number))

    def put_tied(self, tied: Collection[int]) -> None:
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
            self._add(index, step)
            for each in behind.get(place, ()):
                self._add(each, self._renamed(self.given.steps[each]))

    def _add(self, index: int, step: Step) -> None:
        self.steps.append(step)
        self.origin.append(index)

    def _again(self, step: Step, number: int) -> Step:
        """Return a further run of a step, which writes values of its own."""
        made: dict[int, int] = {}
        for value in step.writes:
            made[value] = len(self.values)
            self.values.append(replace(self.given.values[value], name=self._name(value, number)))
        self._latest |= {old: new for old, new in made.items() if old not in self._fixed}
        aliases = tuple(replace(alias, output=made[alias.output]) for alias in step.aliases)
        writes = tuple(made.values())
        name = self.values[writes[0]].name if writes else f"{step.name}.again"
        return replace(step, name=name, writes=writes, aliases=aliases)

    def _name(self, value: int, number: int) -> str:
        suffix = ".again" if number == 2 else f".again{number - 1}"
        name = self.given.values[value].name + suffix
        while name in self._names:
            name += "'"
        self._names.add(name)
        return name

    def _renamed(self, step: Step) -> Step:
        made = self._latest
        if made.keys().isdisjoint(step.reads):
            return step
        return replace(
            step,
            reads=tuple(made.get(value, value) for value in step.reads),
            aliases=tuple(replace(a, input=made.get(a.input, a.input)) for a in step.aliases),
        )


def bound_outputs(schedule: Schedule) -> set[int]:
    """Return the outputs of a schedule, and the values that share their bytes in any plan."""
    shown = {
        alias.output: alias.input
        for step in schedule.steps
        for alias in step.aliases
        if alias.kind in BINDING
    }
    found: set[int] = set()
    for value in schedule.outputs:
        each: int | None = value
        while each is not None and each not in found:
            found.add(each)
            each = shown.get(each)
    return found


def _is_tied(step: Step) -> bool:
    return any(alias.kind is AliasKind.TIED for alias in step.aliases)


def _read_but_by_ties(schedule: Schedule) -> set[int]:
    """Return values that some step needs for more than overwriting bytes for good."""
    found: set[int] = set()
    for step in reversed(schedule.steps):
        if not _is_tied(step) or not found.isdisjoint(step.writes):
            found.update(step.reads)
    return found
