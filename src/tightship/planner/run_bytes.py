"""Counts the bytes of runs of steps: which they read, write anew, and may write over."""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from tightship.planner.problem import Int64Array
from tightship.planner.replayed import bound_outputs
from tightship.planner.schedule import BINDING, AliasKind, Schedule, Step


@dataclass(frozen=True, slots=True)
class Lives:
    """Live bytes of runs, and how long what they write is read.

    Attributes:
        load: Live bytes at each run.
        written: For each run the instances that it writes.
        start: The run that writes each instance.
        stop: The last run that reads it; the number of runs if it lives to the end.
        size: Its bytes.
    """

    load: Int64Array
    written: list[list[int]]
    start: list[int]
    stop: list[int]
    size: list[int]


class RunBytes:
    """Bytes of a schedule's steps, by *root*: the value in whose bytes others always lie.

    Attributes:
        root: The root of each value.
        sizes: Bytes of each root in the arena.
        reads: Roots with bytes that each step reads.
        writes: Roots with bytes that each step writes anew.
        over: Pairs of a written and a read root in whose bytes it may lie, or that lies in its.
        kept: Roots that live to the end.
    """

    def __init__(self, schedule: Schedule) -> None:
        """Count the bytes of every step."""
        self.schedule = schedule
        self.root = roots_of(schedule)
        self.sizes = sizes_of(schedule, self.root)
        self.kept = {self.root[value] for value in bound_outputs(schedule)}
        self.reads = [self._roots(step.reads) for step in schedule.steps]
        self.writes = [
            tuple([root for root in self._roots(step.writes) if root in step.writes])
            for step in schedule.steps
        ]
        self.over = [self._pairs(step) for step in schedule.steps]

    def _roots(self, values: Sequence[int]) -> tuple[int, ...]:
        found = dict.fromkeys([self.root[value] for value in values])
        return tuple([root for root in found if self.sizes[root]])

    def _pairs(self, step: Step) -> tuple[tuple[int, int], ...]:
        pairs = [
            (self.root[alias.output], self.root[alias.input], alias.kind)
            for alias in step.aliases
            if alias.kind in (AliasKind.IN_PLACE, AliasKind.PART)
        ]
        return tuple(
            [
                (new, old)
                for new, old, kind in pairs
                if new != old
                and self.sizes[old]
                and (kind is AliasKind.PART or self.sizes[new] == self.sizes[old])
            ]
        )

    def shared(self, step: int, dying: Callable[[int], bool]) -> int:
        """Return bytes of a step's results that lie where operands which die there lie."""
        left = {new: self.sizes[new] for new, _ in self.over[step]}
        found = 0
        for new, old in dict.fromkeys(self.over[step]):
            if self.sizes[old] <= left[new] and dying(old):
                left[new] -= self.sizes[old]
                found += self.sizes[old]
        return found

    def lives(self, runs: Sequence[int]) -> Lives:
        """Return the live bytes of runs, each of which reads what was written last."""
        latest: dict[int, int] = {}
        start: list[int] = []
        stop: list[int] = []
        size: list[int] = []
        written: list[list[int]] = []
        ending: list[tuple[int, int, dict[int, int]]] = []
        for place, step in enumerate(runs):
            for root in self.reads[step]:
                stop[latest[root]] = place
            own: list[int] = []
            if self.over[step]:
                olds = {old: latest[old] for _, old in self.over[step] if old in latest}
                ending.append((place, step, olds))
            for root in self.writes[step]:
                if root in self.kept and root in latest:
                    continue
                latest[root] = len(start)
                own.append(len(start))
                start.append(place)
                stop.append(len(runs) if root in self.kept else place)
                size.append(self.sizes[root])
            written.append(own)
        load = np.zeros(len(runs) + 2, np.int64)
        begins, ends, sizes = (np.array(each, np.int64) for each in (start, stop, size))
        np.add.at(load, begins, sizes)
        np.subtract.at(load, ends + 1, sizes)
        load = load.cumsum()[: len(runs)]
        load += [self.schedule.steps[step].scratch_bytes for step in runs]
        for place, step, olds in ending:
            dying = {old for old, instance in olds.items() if stop[instance] == place}
            load[place] -= self.shared(step, dying.__contains__)
        return Lives(load, written, start, stop, size)

    def needed(self, runs: Sequence[int]) -> list[int]:
        """Return the places of runs without those that no other run reads, of steps that run again.

        Runs of steps that write nothing with bytes stay.
        """
        counts = Counter(runs)
        places = list(range(len(runs)))
        while True:
            lives = self.lives([runs[place] for place in places])
            idle = {
                at
                for at, own in enumerate(lives.written)
                if own and all(lives.stop[each] == at for each in own)
            }
            kept: list[int] = []
            for at in reversed(range(len(places))):
                step = runs[places[at]]
                if at in idle and counts[step] > 1:
                    counts[step] -= 1
                else:
                    kept.append(places[at])
            if len(kept) == len(places):
                return places
            places = kept[::-1]


def roots_of(schedule: Schedule) -> list[int]:
    """Return for each value the one in whose bytes it always lies."""
    root = list(range(len(schedule.values)))
    for step in schedule.steps:
        for alias in step.aliases:
            if alias.kind in BINDING:
                root[alias.output] = root[alias.input]
    return root


def sizes_of(schedule: Schedule, root: Sequence[int]) -> list[int]:
    """Return the bytes of each root in the arena."""
    sizes = [0] * len(root)
    outside = {root[index] for index, value in enumerate(schedule.values) if value.external}
    for index, value in enumerate(schedule.values):
        if root[index] not in outside:
            sizes[root[index]] = max(sizes[root[index]], value.size_bytes)
    return sizes
