"""Views a schedule as a chain: atoms of its first part, and the steps behind the turn that go back.

The first part is cut into *atoms* where few bytes cross. A step behind the turn belongs to the way
back of the latest atom that it can: the one before which its operands exist, because a later atom
reads them as well, and no step that it waits for belongs to an earlier atom.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import numpy as np

from tightship.planner.parallel.dependencies import dependencies
from tightship.planner.problem import Int64Array
from tightship.planner.recompute import ALL, NEVER
from tightship.planner.replayed import bound_outputs
from tightship.planner.run_bytes import roots_of, sizes_of
from tightship.planner.schedule import AliasKind, Schedule, Step

ATOMS_MAX = 144
"""Most atoms of a chain; the time to choose checkpoints grows with the third power."""


@dataclass(frozen=True, slots=True)
class Life:
    """Bytes of the first part: the steps from the first writer to the last reader there."""

    start: int
    stop: int
    size_bytes: int


class Chain:
    """Atoms of a schedule's first part, with what each needs forward and back.

    Attributes:
        bounds: Steps of the first part at which atoms start, and its end.
        backward: Steps behind the turn of each atom, in order.
    """

    def __init__(self, schedule: Schedule, operations: Sequence[int], turn: int) -> None:
        """Cut the first part into atoms.

        Args:
            schedule: The steps.
            operations: Operations of running each step again; `NEVER` for one that must not.
            turn: Index of the last step of the first part.
        """
        self._schedule, self._operations, self._turn = schedule, operations, turn
        self._root = roots_of(schedule)
        self._sizes = _sizes(schedule, self._root)
        self._lives = self._first_lives()
        self._late = self._read_late()
        self.bounds = self._cuts()
        self._atom = np.repeat(np.arange(len(self.bounds) - 1), np.diff(self.bounds)).tolist()
        self._phase = self._phases()
        self.backward: list[list[int]] = [[] for _ in self.bounds[1:]]
        for index in range(turn + 1, len(schedule.steps)):
            self.backward[self._phase[index]].append(index)

    @property
    def count(self) -> int:
        """Number of atoms."""
        return len(self.bounds) - 1

    def forward(self, atom: int) -> range:
        """Return the steps of an atom."""
        return range(self.bounds[atom], self.bounds[atom + 1])

    def runs(self, passes: Sequence[int]) -> list[int]:
        """Return the steps of passes, pairs of a kind and an atom; step `NEVER` run once."""
        found: list[int] = []
        once: set[int] = set()
        for kind, atom in zip(passes[::2], passes[1::2], strict=True):
            for step in self.backward[atom] if kind == 3 else self.forward(atom):
                if step not in once:
                    found.append(step)
                if self._operations[step] == NEVER:
                    once.add(step)
        return found

    @cached_property
    def rows(self) -> Int64Array:
        """Operations and bytes of each atom, as `CheckpointTable` wants them; shape (7, n)."""
        count = self.count
        sweep, last = self._needed(crossing=True), self._needed(crossing=False)
        whole = [one | other for one, other in zip(sweep, last, strict=True)]
        saved, late = np.zeros(count, np.int64), np.zeros(count, np.int64)
        for root, life in self._lives.items():
            atom = self._atom[life.start]
            if self._is_saved(root):
                late[atom] += life.size_bytes
            if self._is_saved(root) or self._atom[life.stop] > atom:
                saved[atom] += life.size_bytes
        live, arriving = self._backward_bytes()
        peaks = np.maximum(0, self._forward_peaks(with_saved=True) - self.held[0])
        costs = [[sum(self._cost(i) for i in each) for each in way] for way in (sweep, whole, last)]
        return np.array([*costs, saved, peaks, late + live, arriving], np.int64)

    @cached_property
    def held(self) -> Int64Array:
        """Bytes that cross into atom s and that the input of atom i lacks; shape (n, n)."""
        crossing = np.zeros((self.count, self.count + 1), np.int64)
        for life in self._lives.values():
            first, last = self._atom[life.start], self._atom[life.stop]
            if last > first:
                crossing[first, first + 1] += life.size_bytes
                crossing[first, last + 1] -= life.size_bytes
        crossing = crossing[:, :-1].cumsum(axis=1)
        return np.ascontiguousarray(crossing[::-1].cumsum(axis=0)[::-1])

    @cached_property
    def peaks(self) -> Int64Array:
        """Largest bytes of a sweep from atom i up to s beside the input of i; shape (n, n)."""
        beside = self._forward_peaks(with_saved=False) - self.held[0] + self.held
        beside = np.where(np.arange(self.count) >= np.arange(self.count)[:, None], beside, 0)
        found = np.zeros_like(beside)
        found[:, 1:] = np.maximum.accumulate(np.maximum(beside, 0), axis=1)[:, :-1]
        return np.ascontiguousarray(found)

    def _cost(self, index: int) -> int:
        return max(0, self._operations[index])

    def _first_lives(self) -> dict[int, Life]:
        """Return the lives of bytes that the first part writes and can write again."""
        steps = self._schedule.steps[: self._turn + 1]
        fixed = {self._root[value] for value in bound_outputs(self._schedule)}
        start: dict[int, int] = {}
        stop: dict[int, int] = {}
        for index, step in enumerate(steps):
            for value in step.writes:
                start.setdefault(self._root[value], index)
                if self._operations[index] == NEVER:
                    fixed.add(self._root[value])
            for value in (*step.reads, *step.writes):
                stop[self._root[value]] = index
        return {
            root: Life(index, stop[root], self._sizes[root])
            for root, index in start.items()
            if not self._schedule.values[root].external and root not in fixed
        }

    def _read_late(self) -> dict[int, list[int]]:
        """Return the steps behind the turn that read bytes of the first part."""
        found: dict[int, list[int]] = {}
        for index in range(self._turn + 1, len(self._schedule.steps)):
            for root in {self._root[value] for value in self._schedule.steps[index].reads}:
                if root in self._lives:
                    found.setdefault(root, []).append(index)
        return found

    def _cuts(self) -> list[int]:
        """Choose where atoms start: where fewest bytes cross, and fewest that are not read late."""
        stop = self._turn + 1
        change = np.zeros(stop + 2, np.int64)
        for root, life in self._lives.items():
            weight = life.size_bytes * (1 if root in self._late else 2)
            change[life.start + 1] += weight
            change[life.stop + 1] -= weight
        score = change.cumsum()[1:stop]
        lowest = [
            place + 1
            for place in range(len(score))
            if score[place]
            <= min(score[max(0, place - 1)], score[place + 1 : place + 2].min(initial=ALL))
        ]
        while len(lowest) >= ATOMS_MAX:
            lowest = [min(pair, key=lambda cut: score[cut - 1]) for pair in _pairs(lowest)]
        return [0, *lowest, stop]

    def _phases(self) -> list[int]:
        """Return the atom of each step on the way back; -1 for steps of the first part."""
        steps, end = self._schedule.steps, len(self.bounds) - 2
        before: list[list[int]] = [[] for _ in steps]
        for one, other in dependencies(self._schedule):
            before[other].append(one)
        phase, free = [-1] * len(steps), [False] * len(steps)
        for index in range(self._turn + 1, len(steps)):
            limits = [
                self._atom[self._lives[root].stop]
                for root in {self._root[value] for value in steps[index].reads}
                if root in self._lives
            ]
            waits = [one for one in before[index] if one > self._turn]
            if any(alias.kind is AliasKind.TIED for alias in steps[index].aliases):
                limits += [self._atom[one] for one in before[index] if one <= self._turn]
            free[index] = all(free[one] for one in waits)
            phase[index] = min([end, *limits, *(phase[one] for one in waits)])
        for index in range(len(steps) - 1, self._turn, -1):
            for one in before[index]:
                if one > self._turn and free[one] and not free[index]:
                    wanted = [phase[k] for k in self._readers[one]]
                    phase[one] = min(phase[one], max(wanted))
        return phase

    @cached_property
    def _readers(self) -> dict[int, list[int]]:
        """Return the steps that read what each step writes."""
        steps = self._schedule.steps
        writer = {value: index for index, step in enumerate(steps) for value in step.writes}
        found: dict[int, list[int]] = {index: [] for index in range(len(steps))}
        for index, step in enumerate(steps):
            for value in step.reads:
                if value in writer:
                    found[writer[value]].append(index)
        return found

    def _is_saved(self, root: int) -> bool:
        """Whether the way back of the atom that writes bytes, or an earlier one, reads them."""
        atom = self._atom[self._lives[root].start]
        return any(self._phase[index] <= atom for index in self._late.get(root, ()))

    def _needed(self, *, crossing: bool) -> list[set[int]]:
        """Return steps of each atom that lead to bytes that cross into the next, or are saved."""
        found = []
        for atom in range(self.count):
            wanted, steps = set[int](), set[int]()
            for index in reversed(self.forward(atom)):
                step = self._schedule.steps[index]
                roots = {self._root[value] for value in step.writes}
                if not wanted.isdisjoint(roots) or any(
                    (
                        self._atom[self._lives[root].stop] > atom
                        if crossing
                        else self._is_saved(root)
                    )
                    for root in roots
                    if root in self._lives
                ):
                    steps.add(index)
                    wanted.update(self._root[value] for value in step.reads)
            found.append(steps)
        return found

    def _forward_peaks(self, *, with_saved: bool) -> Int64Array:
        """Return the most live bytes of each atom forward, with what the way back reads or not."""
        change = np.zeros(self._turn + 3, np.int64)
        lives = self._lives
        for root, life in lives.items():
            saved = with_saved and self._is_saved(root)
            stop = self.bounds[self._atom[life.start] + 1] if saved else life.stop + 1
            change[life.start] += life.size_bytes
            change[max(stop, life.stop + 1)] -= life.size_bytes
        load = change.cumsum()
        for index in range(self._turn + 1):
            step = self._schedule.steps[index]
            dying = [
                root for root in {self._root[value] for value in step.reads}
                if root in lives and lives[root].stop == index
                and not (with_saved and self._is_saved(root))
            ]  # fmt: skip
            load[index] += step.scratch_bytes - self._overwritten(step, dying)
        return np.array([load[a:b].max(initial=0) for a, b in pairwise(self.bounds)], np.int64)

    def _overwritten(self, step: Step, dying: Sequence[int]) -> int:
        """Return bytes of a step's results that lie in operands which die there."""
        over = {
            self._root[alias.input]: self._sizes[self._root[alias.input]]
            for alias in step.aliases
            if alias.kind is AliasKind.IN_PLACE
            and self._root[alias.input] in dying
            and self._sizes[self._root[alias.input]] == self._sizes[self._root[alias.output]]
        }
        return sum(over.values())

    def _backward_bytes(self) -> tuple[Int64Array, Int64Array]:
        """Return the most live bytes of each atom's way back, and those that arrive before it.

        Only values that are written behind the turn count.
        """
        steps, order = self._schedule.steps, [i for each in reversed(self.backward) for i in each]
        start: dict[int, int] = {}
        stop: dict[int, int] = {}
        for place, index in enumerate(order):
            for value in steps[index].writes:
                start.setdefault(self._root[value], place)
            for value in (*steps[index].reads, *steps[index].writes):
                stop[self._root[value]] = place
        for value in bound_outputs(self._schedule):
            stop[self._root[value]] = len(order)
        change = np.zeros(len(order) + 2, np.int64)
        for root, place in start.items():
            change[place] += self._sizes[root]
            change[stop[root] + 1] -= self._sizes[root]
        load = change.cumsum()[: len(order) + 1]
        crossing = load.copy()
        for place, index in enumerate(order):
            step = steps[index]
            dying = [r for r in {self._root[v] for v in step.reads} if stop.get(r) == place]
            new = sum(self._sizes[r] for r in {self._root[v] for v in step.writes})
            crossing[place] -= new
            load[place] += step.scratch_bytes
            load[place] -= self._overwritten(step, [r for r in dying if r in start])
        live, arriving, place = [], [], len(order)
        for each in self.backward:
            live.append(load[place - len(each) : place].max(initial=0))
            place -= len(each)
            arriving.append(crossing[place] if each else 0)
        return np.array(live, np.int64), np.array(arriving, np.int64)


def _pairs(cuts: Sequence[int]) -> list[tuple[int, ...]]:
    return [tuple(cuts[place : place + 2]) for place in range(0, len(cuts), 2)]


def _sizes(schedule: Schedule, root: Sequence[int]) -> list[int]:
    """Return the bytes of each root in the arena; a part of a concatenation takes none."""
    sizes = sizes_of(schedule, root)
    for step in schedule.steps:
        for alias in step.aliases:
            if alias.kind is AliasKind.PART:
                sizes[root[alias.input]] = 0
    return sizes
