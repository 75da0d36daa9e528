"""Which outputs are written over an input: a choice that no step's load may pay for."""

from collections.abc import Collection, Iterator

import numpy as np

from tightship.planner.cell import Cell, merge
from tightship.planner.problem import Int64Array
from tightship.planner.schedule import Alias, AliasKind, Schedule


def choose(
    schedule: Schedule, cells: list[Cell], without: Collection[Alias] = ()
) -> tuple[Alias, ...]:
    """Merge cells along IN_PLACE aliases that hold, and return these in the order of their steps.

    An alias holds if nobody reads the input's bytes later and no other operand of the step lies
    in them. First those are taken that cost nothing: between cells of one size, and over donated
    bytes. Two cells of different sizes cost bytes where only the smaller would be live; these
    are taken where they lower the largest load, or leave it as it is.

    Args:
        schedule: Values and steps.
        cells: The cell of each value; merged in place.
        without: Aliases to leave out.

    Complexity: O(values + reads), and O(span) for each alias between cells of different sizes.
    """
    choice = _Choice(schedule, cells, frozenset(without))
    choice.take_free()
    choice.lower_peak()
    choice.take_within(choice.peak_bytes)
    return tuple(alias for _, alias in sorted(choice.taken, key=lambda pair: pair[0]))


def choose_all(schedule: Schedule, cells: list[Cell]) -> tuple[Alias, ...]:
    """Merge cells of one size along every IN_PLACE alias that holds, as `choose` does first."""
    choice = _Choice(schedule, cells, frozenset())
    choice.take_free()
    return tuple(alias for _, alias in choice.taken)


class _Choice:
    """Cells, the load they make, and the aliases taken so far, each with its step."""

    def __init__(self, schedule: Schedule, cells: list[Cell], without: frozenset[Alias]) -> None:
        self.schedule = schedule
        self.cells = cells
        self.load = _load_bytes(schedule, cells)
        self.taken: list[tuple[int, Alias]] = []
        self._without = without
        self._done: set[int] = set()

    @property
    def peak_bytes(self) -> int:
        """The largest load."""
        return int(self.load.max(initial=0))

    def take_free(self) -> None:
        """Take aliases that raise no step's load."""
        for index in range(len(self.schedule.steps)):
            for alias in self._offered(index):
                host, cell = self._cells_of(alias)
                if (host.external or host.size_bytes == cell.size_bytes) and self._holds(
                    index, alias
                ):
                    self._take(index, alias)

    def lower_peak(self) -> None:
        """Take aliases at steps of the largest load, while fewer steps have it or it falls."""
        while self._lower_once():
            pass

    def take_within(self, limit: int) -> None:
        """Take aliases that leave every step's load at `limit` or below."""
        for index in range(len(self.schedule.steps)):
            for alias in sorted(self._offered(index), key=self._growth):
                if self._holds(index, alias):
                    change = self._change(alias)
                    if int((self.load[change[0]] + change[1]).max()) <= limit:
                        self._take(index, alias)

    def _lower_once(self) -> bool:
        peak = self.peak_bytes
        for index in np.flatnonzero(self.load == peak).tolist():
            for alias in sorted(self._offered(index), key=self._shared, reverse=True):
                if self._holds(index, alias):
                    span, change = self._change(alias)
                    before, after = self.load[span], self.load[span] + change
                    if after.max() <= peak and (after == peak).sum() < (before == peak).sum():
                        self._take(index, alias)
                        return True
        return False

    def _offered(self, index: int) -> Iterator[Alias]:
        for alias in self.schedule.steps[index].aliases:
            if (
                alias.kind is AliasKind.IN_PLACE
                and alias.output not in self._done
                and alias not in self._without
            ):
                yield alias

    def _cells_of(self, alias: Alias) -> tuple[Cell, Cell]:
        return self.cells[alias.input], self.cells[alias.output]

    def _growth(self, alias: Alias) -> int:
        host, cell = self._cells_of(alias)
        return abs(cell.size_bytes - host.size_bytes)

    def _shared(self, alias: Alias) -> int:
        host, cell = self._cells_of(alias)
        return min(host.size_bytes, cell.size_bytes)

    def _holds(self, index: int, alias: Alias) -> bool:
        """Whether step `index` is the only and last user of the bytes of an alias' input."""
        host, cell = self._cells_of(alias)
        step = self.schedule.steps[index]
        return (
            alias.output not in self._done
            and not cell.external
            and (not host.external or _holds_donated(host, cell))
            and not host.is_kept
            and host.stop_step == index + 1
            and all(self.cells[value] is not host for value in step.writes)
            and all(v == alias.input or self.cells[v] is not host for v in step.reads)
        )

    def _change(self, alias: Alias) -> tuple[slice, Int64Array]:
        """What taking an alias adds to the load, and in which steps."""
        host, cell = self._cells_of(alias)
        start, at, stop = host.start_step, cell.start_step, cell.stop_step
        if host.external:
            return slice(at, stop), np.full(stop - at, -cell.size_bytes)
        change = np.zeros(stop - start, np.int64)
        change[: at - start] = max(0, cell.size_bytes - host.size_bytes)
        change[at - start] = -min(host.size_bytes, cell.size_bytes)
        change[at - start + 1 :] = max(0, host.size_bytes - cell.size_bytes)
        return slice(start, stop), change

    def _take(self, index: int, alias: Alias) -> None:
        host, cell = self._cells_of(alias)
        if not host.external and host.size_bytes == cell.size_bytes:
            self.load[index] -= cell.size_bytes
        else:
            span, change = self._change(alias)
            self.load[span] += change
        merge(self.cells, host, cell)
        self._done.add(alias.output)
        self.taken.append((index, alias))


def _holds_donated(host: Cell, cell: Cell) -> bool:
    return host.donated and cell.size_bytes <= host.size_bytes and cell.alignment <= host.alignment


def _load_bytes(schedule: Schedule, cells: list[Cell]) -> Int64Array:
    """Live bytes in each step, scratch included."""
    change = [0] * (len(schedule.steps) + 1)
    written = dict.fromkeys(cells[value] for step in schedule.steps for value in step.writes)
    for cell in written:
        if not cell.external:
            change[cell.start_step] += cell.size_bytes
            change[cell.stop_step] -= cell.size_bytes
    load = np.cumsum(np.array(change[:-1], np.int64))
    return load + np.array([step.scratch_bytes for step in schedule.steps], np.int64)
