"""Hypothesis strategies: problems and schedules that are valid by construction."""

from dataclasses import dataclass, field, replace

import numpy as np
from hypothesis import strategies as st

from tightship.planner.problem import Problem
from tightship.planner.schedule import Alias, AliasKind, Schedule, ScheduledValue, Step

Row = tuple[int, int, int, int]
"""Size, start, stop, alignment."""


def problem(*rows: Row, **fields) -> Problem:
    """A problem from its rows."""
    columns = np.array(rows, np.int64).reshape(-1, 4).T
    return Problem(*columns, **fields)


@st.composite
def rows(draw, alignments: tuple[int, ...] = (1, 4, 16)) -> Row:
    start = draw(st.integers(0, 12))
    length = draw(st.integers(1, 6))
    return (draw(st.integers(0, 64)), start, start + length, draw(st.sampled_from(alignments)))


def problems(count_max: int = 12, alignments: tuple[int, ...] = (1, 4, 16), count_min: int = 0):
    drawn = st.lists(rows(alignments), min_size=count_min, max_size=count_max)
    return drawn.map(lambda each: problem(*each))


@dataclass
class _Draft:
    """A schedule in the making; `family` says which values show the same bytes."""

    values: list[ScheduledValue] = field(default_factory=list)
    family: list[int] = field(default_factory=list)
    alive: list[int] = field(default_factory=list)

    def add(
        self,
        size: int,
        *,
        external: bool = False,
        donated: bool = False,
        family: int | None = None,
    ) -> int:
        index = len(self.values)
        self.values.append(ScheduledValue(f"v{index}", size, 8, external, donated))
        self.family.append(index if family is None else family)
        self.alive.append(index)
        return index

    def is_external(self, value: int) -> bool:
        return self.values[self.family[value]].external

    def bury(self, value: int) -> None:
        family = self.family[value]
        self.alive = [other for other in self.alive if self.family[other] != family]


@st.composite
def schedules(draw) -> Schedule:
    draft = _Draft()
    for _ in range(draw(st.integers(1, 2))):
        draft.add(draw(st.integers(1, 40)), external=True, donated=draw(st.booleans()))
    steps = [
        (_draw_concat if draw(st.integers(0, 4)) == 0 else _draw_step)(draw, draft, f"s{index}")
        for index in range(draw(st.integers(1, 8)))
    ]
    internal = [value for value in draft.alive if not draft.is_external(value)]
    outputs = draw(st.lists(st.sampled_from(internal), max_size=2, unique=True)) if internal else []
    return Schedule(tuple(draft.values), tuple(steps), tuple(outputs))


def _draw_step(draw, draft: _Draft, name: str) -> Step:
    reads = draw(st.lists(st.sampled_from(draft.alive), min_size=1, max_size=3, unique=True))
    aliases: list[Alias] = []
    writes: list[int] = []
    for _ in range(draw(st.integers(1, 2))):
        source = draw(st.sampled_from(reads))
        kind = draw(st.sampled_from([None, AliasKind.IN_PLACE, *_kinds(draft, reads, source)]))
        if kind is AliasKind.TIED and not writes:
            draft.bury(source)
        elif kind is AliasKind.TIED:
            kind = None
        writes.append(_draw_output(draw, draft, kind, source))
        if kind is not None:
            aliases.append(Alias(writes[-1], source, kind))
    return Step(name, "Op", tuple(reads), tuple(writes), draw(st.integers(0, 20)), tuple(aliases))


def _draw_concat(draw, draft: _Draft, name: str) -> Step:
    """A step whose output holds its operands one after another; some of them may be its parts."""
    reads = draw(st.lists(st.sampled_from(draft.alive), min_size=1, max_size=3, unique=True))
    sizes = [draft.values[value].size_bytes for value in reads]
    output = draft.add(sum(sizes) + draw(st.integers(0, 8)), external=draw(st.integers(0, 5)) == 0)
    aliases = [
        Alias(output, value, AliasKind.PART, sum(sizes[:index]))
        for index, value in enumerate(reads)
        if draw(st.booleans())
    ]
    return Step(name, "Concat", tuple(reads), (output,), 0, tuple(aliases))


def _kinds(draft: _Draft, reads: list[int], source: int) -> list[AliasKind]:
    """Aliases that bind and may be made to `source`."""
    alone = [draft.family[value] for value in reads].count(draft.family[source]) == 1
    if source not in draft.alive:
        return []
    if draft.is_external(source) or not alone:
        return [AliasKind.VIEW]
    return [AliasKind.VIEW, AliasKind.TIED]


def _draw_output(draw, draft: _Draft, kind: AliasKind | None, source: int) -> int:
    size = draw(st.one_of(st.integers(0, 5).map(lambda units: 8 * units), st.integers(0, 40)))
    if kind is AliasKind.VIEW:
        return draft.add(min(size, draft.values[source].size_bytes), family=draft.family[source])
    return draft.add(size, external=kind is None and draw(st.booleans()))


def of_one_size(schedule: Schedule, size_bytes: int) -> Schedule:
    """The schedule with all values of one size, and so without parts."""
    values = tuple(replace(value, size_bytes=size_bytes) for value in schedule.values)
    steps = tuple(
        replace(step, aliases=tuple(a for a in step.aliases if a.kind is not AliasKind.PART))
        for step in schedule.steps
    )
    return Schedule(values, steps, schedule.outputs)
