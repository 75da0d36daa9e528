"""A program replayed with several steps under way at once, each byte stamped with whose it is."""

from collections.abc import Iterable
from random import Random

import numpy as np
from numpy.typing import NDArray

from tightship.planner import AliasKind, SchedulePlan
from tightship.planner.parallel.dependencies import dependencies


class CorruptedError(Exception):
    """A step found other bytes than it had been promised."""


class Replay:
    """One run: steps start in any order that values and `added` edges allow, and end in any."""

    def __init__(self, plan: SchedulePlan, added: Iterable[tuple[int, int]] = ()) -> None:
        self.plan, self.schedule = plan, plan.schedule
        self.cuts = self._cuts()
        self.owner = np.full(len(self.cuts), -1)
        self.root: dict[int, int] = {}
        self.parts: dict[int, set[int]] = {}
        self.waits = self._waits(added)

    def run(self, random: Random) -> None:
        """Start and end steps at random.

        Raises:
            CorruptedError: A step's values were written over while it needed them.
        """
        waits = [set(before) for before in self.waits]
        waiting, running = set(range(len(waits))), []
        while waiting or running:
            ready = sorted(step for step in waiting if not waits[step])
            if ready and (not running or random.random() < 0.6):
                step = random.choice(ready)
                waiting.remove(step)
                self.start(step)
                running.append(step)
            else:
                step = running.pop(random.randrange(len(running)))
                self.finish(step)
                for others in waits:
                    others.discard(step)
        for value in self.schedule.outputs:
            self.check(value, "the caller")

    def start(self, index: int) -> None:
        step = self.schedule.steps[index]
        for value in step.reads:
            self.check(value, step.name)
        views = {a.output: a.input for a in step.aliases if a.kind is AliasKind.VIEW}
        for value in step.writes:
            if value in views:
                self.root[value] = self.root.get(views[value], views[value])
            else:
                self.write(index, value)
        offset = self.plan.scratch_offset(index)
        if offset is not None:
            self.bytes(offset, step.scratch_bytes)[:] = -2 - index
        self.check_kept(index)

    def finish(self, index: int) -> None:
        step = self.schedule.steps[index]
        self.check_kept(index)
        for value in step.writes:
            self.check(value, step.name)
        offset = self.plan.scratch_offset(index)
        if offset is not None and (self.bytes(offset, step.scratch_bytes) != -2 - index).any():
            raise CorruptedError(f"scratch of {step.name}")

    def check_kept(self, index: int) -> None:
        """Inputs that the step does not itself write over."""
        step = self.schedule.steps[index]
        over = {
            self.root.get(alias.input, alias.input)
            for alias in step.aliases
            if alias.kind in (AliasKind.TIED, AliasKind.IN_PLACE)
            and self.plan.value_offset(alias.output) is not None
            and self.plan.buffers.of_value[alias.output] == self.plan.buffers.of_value[alias.input]
        }
        for value in step.reads:
            if self.root.get(value, value) not in over:
                self.check(value, step.name)

    def write(self, index: int, value: int) -> None:
        offset = self.plan.value_offset(value)
        if offset is None:
            return
        owner = self.bytes(offset, self.schedule.values[value].size_bytes)
        kept = set()
        for alias in self.schedule.steps[index].aliases:
            place = self.plan.value_offset(alias.input)
            if (
                alias.kind is AliasKind.PART
                and alias.output == value
                and place == offset + alias.offset_bytes
            ):
                kept |= self.owners(alias.input)
        self.parts[value] = kept
        owner[~np.isin(owner, list(kept))] = value

    def bytes(self, offset: int, size_bytes: int) -> NDArray[np.int64]:
        """Return the owners of some bytes; those that always have one owner are counted once."""
        first, last = np.searchsorted(self.cuts, (offset, offset + size_bytes))
        return self.owner[first:last]

    def owners(self, value: int) -> set[int]:
        root = self.root.get(value, value)
        return {root} | self.parts.get(root, set())

    def check(self, value: int, who: str) -> None:
        offset = self.plan.value_offset(value)
        if offset is None:
            return
        owner = self.bytes(offset, self.schedule.values[value].size_bytes)
        if not np.isin(owner, list(self.owners(value))).all():
            raise CorruptedError(f"{self.schedule.values[value].name} for {who}")

    def _cuts(self) -> NDArray[np.int64]:
        cuts = {0}
        for value, scheduled in enumerate(self.schedule.values):
            offset = self.plan.value_offset(value)
            if offset is not None:
                cuts |= {offset, offset + scheduled.size_bytes}
        for index, step in enumerate(self.schedule.steps):
            offset = self.plan.scratch_offset(index)
            if offset is not None:
                cuts |= {offset, offset + step.scratch_bytes}
        return np.array(sorted(cuts))

    def _waits(self, added: Iterable[tuple[int, int]]) -> list[set[int]]:
        waits: list[set[int]] = [set() for _ in self.schedule.steps]
        for before, after in (*dependencies(self.schedule), *added):
            waits[after].add(before)
        return waits
