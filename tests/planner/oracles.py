"""Slow, obvious models of what the planner promises."""

import numpy as np

from tightship.planner.problem import Problem
from tightship.planner.schedule import AliasKind, Schedule
from tightship.planner.schedule_plan import NO_BUFFER, Buffers


def smallest_peak(problem: Problem, pins: dict[int, int] | None = None) -> int:
    """The peak of an optimal plan, by first fit over every order of the buffers without a pin.

    Taking the buffers of an optimal plan by rising offset, first fit puts none of them higher.
    """
    rows = list(
        zip(
            problem.size_bytes.tolist(),
            problem.start_step.tolist(),
            problem.stop_step.tolist(),
            problem.alignment.tolist(),
            strict=True,
        )
    )
    pins = pins or {}
    pinned = [(offset, rows[index]) for index, offset in pins.items()]
    reached = max((offset + row[0] for offset, row in pinned), default=0)
    rows = [row for index, row in enumerate(rows) if row[0] and index not in pins]
    best = reached + sum(size + alignment for size, _, _, alignment in rows)

    def extend(placed, left, peak):
        nonlocal best
        if peak >= best:
            return
        if not left:
            best = peak
        for i, row in enumerate(left):
            offset = lowest_offset(placed, row)
            extend([*placed, (offset, row)], left[:i] + left[i + 1 :], max(peak, offset + row[0]))

    extend(pinned, rows, reached)
    return best


def lowest_offset(placed, row) -> int:
    size, start, stop, alignment = row
    met = [(offset, other) for offset, other in placed if other[1] < stop and start < other[2]]
    tops = [0, *(offset + other[0] for offset, other in met)]
    candidates = sorted(-(-top // alignment) * alignment for top in tops)
    return next(
        candidate
        for candidate in candidates
        if all(
            offset >= candidate + size or offset + other[0] <= candidate for offset, other in met
        )
    )


class Replay:
    """Runs a schedule over bytes: each value is a pattern, and must be whole when it is read.

    What holds parts that were written where it keeps them is made of theirs; nothing is copied.
    """

    def __init__(self, schedule: Schedule, buffers: Buffers, offset_bytes) -> None:
        self.schedule = schedule
        self.buffers = buffers
        self.offset_bytes = offset_bytes
        tops = offset_bytes + buffers.problem.size_bytes
        self.arena = np.zeros(int(tops.max(initial=0)), np.int64)
        self.pattern = {}
        self.parts = {}
        donated = [i for i, value in enumerate(schedule.values) if value.donated]
        self.lender = {value: value for value in donated}
        self.lent = dict.fromkeys(donated)

    def run(self) -> None:
        for index, step in enumerate(self.schedule.steps):
            for value in step.reads:
                self.check(value, f"before {step.name}")
            scratch = self.slice(self.buffers.of_scratch[index], step.scratch_bytes)
            self.arena[scratch] = -1 - index
            for alias in step.aliases:
                if self.is_over(alias) and self.buffers.of_value[alias.output] != NO_BUFFER:
                    output, source = self.bytes_of(alias.output), self.bytes_of(alias.input)
                    assert output.start == source.start, f"{alias} is not in place"
            overwritten = {alias.input for alias in step.aliases if self.is_over(alias)}
            for value in step.writes:
                self.write(value, step)
            for value in step.writes:
                self.check(value, f"after {step.name}")
            for value in step.reads:
                if value not in overwritten:
                    self.check(value, f"during {step.name}")
            assert (self.arena[scratch] == -1 - index).all(), f"scratch of {step.name}"
        for value in self.schedule.outputs:
            self.check(value, "at the end")

    def write(self, value, step) -> None:
        views = [a.input for a in step.aliases if a.output == value and a.kind is AliasKind.VIEW]
        if views:
            self.pattern[value] = self.pattern.get(views[0])
            self.parts[value] = self.parts.get(views[0], [])
            if views[0] in self.lender:
                self.lender[value] = self.lender[views[0]]
            return
        self.pattern[value] = 1 + value
        self.parts[value] = [a for a in self.buffers.parts if a.output == value]
        for alias in step.aliases:
            if alias.output == value and alias.input in self.lender and self.is_over(alias):
                self.lender[value] = lender = self.lender[alias.input]
                self.lent[lender] = 1 + value
                assert self.sizes_fit(value, lender)
        if self.buffers.of_value[value] != NO_BUFFER:
            room = self.arena[self.bytes_of(value)]
            room[self.is_own(value)] = 1 + value

    def is_own(self, value):
        """Return which bytes of a value do not belong to a part."""
        own = np.ones(self.schedule.values[value].size_bytes, bool)
        for part in self.parts.get(value, ()):
            size = self.schedule.values[part.input].size_bytes
            own[part.offset_bytes : part.offset_bytes + size] = False
        return own

    def expected(self, value):
        """Return the expected contents of a value's bytes."""
        content = np.full(self.schedule.values[value].size_bytes, self.pattern[value])
        for part in self.parts.get(value, ()):
            inner = self.expected(part.input)
            room = content[part.offset_bytes :][: len(inner)]
            room[:] = inner[: len(room)]
        return content

    def is_over(self, alias) -> bool:
        return alias.kind is AliasKind.TIED or alias in self.buffers.in_place

    def sizes_fit(self, value, lender) -> bool:
        one, other = self.schedule.values[value], self.schedule.values[lender]
        return one.size_bytes <= other.size_bytes and one.alignment <= other.alignment

    def check(self, value, when) -> None:
        if value in self.lender:
            written = self.pattern.get(value)
            assert self.lent[self.lender[value]] == written, f"donated bytes of {value} {when}"
        if self.buffers.of_value[value] != NO_BUFFER:
            intact = self.arena[self.bytes_of(value)] == self.expected(value)
            assert intact.all(), f"value {value} {when}"

    def bytes_of(self, value) -> slice:
        inside = self.buffers.inside.get(value, 0)
        scheduled = self.schedule.values[value]
        assert inside % scheduled.alignment == 0
        return self.slice(self.buffers.of_value[value], scheduled.size_bytes, inside)

    def slice(self, buffer, size, inside=0) -> slice:
        if buffer == NO_BUFFER:
            return slice(0, 0)
        start = int(self.offset_bytes[buffer]) + inside
        assert inside + size <= self.buffers.problem.size_bytes[buffer]
        return slice(start, start + size)
