"""The memory note's walk: counters of future readers, and a box of blocks that are free.

The graph is traversed in its order. A value's counter says how many steps to come depend on it.
An output is written over an input whose counter is 1. A block goes into the box when the
counter reaches 0, and comes out of it for a value of a size close enough. Nothing is allocated
meanwhile: a block ends up as large as its largest tenant.
"""

from bisect import bisect_left, insort
from collections import Counter
from collections.abc import Iterable, Sequence

from tightship.planner.cell import Cell, cells_of
from tightship.planner.schedule import Alias, AliasKind, Schedule, Step
from tightship.planner.scheme.blocks import NO_BLOCK, Blocks

MATCH_RANGE = 16
"""A block matches a request if their sizes are within this factor of each other."""

MATCH_RANGES = (1, 2, 4, 8, 16)
"""Those that a search tries."""


def walk(schedule: Schedule, *, in_place: bool = True, match_range: int = MATCH_RANGE) -> Blocks:
    """Give every value a block, as the note's heuristic does.

    With `match_range=0` nothing is recycled; with `in_place=False` as well, every value has a
    block of its own. In-place is taken wherever it is safe, between values of one size, and
    before anything else: it can cost bytes that sharing alone would save.

    Args:
        schedule: Values and steps.
        in_place: Whether IN_PLACE aliases may be taken; VIEW and TIED ones always are.
        match_range: Factor within which sizes match.

    Raises:
        PlanError: Values are bound to each other in a way that no plan can honour.

    Complexity: O(n log n) for n values, but for moving the box's entries.
    """
    return _Walk(schedule, match_range, in_place=in_place).run()


def search_match_range(
    schedule: Schedule, *, in_place: bool = True, match_ranges: Iterable[int] = MATCH_RANGES
) -> Blocks:
    """The smallest of several walks; of equal ones the first.

    Raises:
        PlanError: As `walk`.
    """
    walks = [walk(schedule, in_place=in_place, match_range=each) for each in match_ranges]
    return min(walks, key=lambda blocks: blocks.total_bytes)


class FreeBox:
    """Blocks by size, and which of them are free."""

    def __init__(self, match_range: int) -> None:
        self.size_bytes: list[int] = []
        self._match_range = match_range
        self._free: list[tuple[int, int]] = []

    def take(self, size_bytes: int) -> int:
        """A block for a request.

        The smallest that is large enough, else the largest of those too small, which grows, if
        their sizes match the request's; else a new one.
        """
        at = bisect_left(self._free, (size_bytes, 0))
        if at < len(self._free) and self._free[at][0] <= size_bytes * self._match_range:
            return self._free.pop(at)[1]
        if at > 0 and self._free[at - 1][0] * self._match_range >= size_bytes:
            block = self._free.pop(at - 1)[1]
            self.size_bytes[block] = size_bytes
            return block
        self.size_bytes.append(size_bytes)
        return len(self.size_bytes) - 1

    def put(self, block: int) -> None:
        """Recycle a block."""
        insort(self._free, (self.size_bytes[block], block))


class _Walk:
    def __init__(self, schedule: Schedule, match_range: int, *, in_place: bool) -> None:
        self.schedule = schedule
        self.in_place = in_place
        self.cells = cells_of(schedule)
        self.box = FreeBox(match_range)
        self.block_of: dict[Cell, int] = {}
        self.taken: list[Alias] = []
        self.counter = Counter(
            cell for step in schedule.steps for cell in _distinct(self.cells, step.reads)
        )
        self.counter.update({cell for cell in self.cells if cell.is_kept})

    def run(self) -> Blocks:
        of_scratch = [NO_BLOCK] * len(self.schedule.steps)
        for index, step in enumerate(self.schedule.steps):
            reads = _distinct(self.cells, step.reads)
            written = _distinct(self.cells, step.writes)
            inherited: set[Cell] = set()
            for cell in written:
                if not cell.external and cell not in self.block_of:
                    self.block_of[cell] = self._block(step, cell, inherited)
            if step.scratch_bytes:
                of_scratch[index] = self.box.take(step.scratch_bytes)
                self.box.put(of_scratch[index])
            self._count_down(reads, written, inherited)
        written_values = {value for step in self.schedule.steps for value in step.writes}
        of_value = [
            self.block_of.get(cell, NO_BLOCK) if value in written_values else NO_BLOCK
            for value, cell in enumerate(self.cells)
        ]
        sizes = tuple(self.box.size_bytes)
        return Blocks(sizes, tuple(of_value), tuple(of_scratch), tuple(self.taken))

    def _block(self, step: Step, cell: Cell, inherited: set[Cell]) -> int:
        """The block of an output: that of an input nobody else needs, or one from the box."""
        for alias in step.aliases if self.in_place else ():
            host = self.cells[alias.input]
            if (
                alias.kind is AliasKind.IN_PLACE
                and self.cells[alias.output] is cell
                and host not in inherited
                and self._may_take(step, alias, host, cell)
            ):
                inherited.add(host)
                self.taken.append(alias)
                return self.block_of[host]
        return self.box.take(cell.size_bytes)

    def _may_take(self, step: Step, alias: Alias, host: Cell, cell: Cell) -> bool:
        return (
            not host.external
            and self.counter[host] == 1
            and host.size_bytes == cell.size_bytes
            and all(self.cells[value] is not host for value in step.writes)
            and all(v == alias.input or self.cells[v] is not host for v in step.reads)
        )

    def _count_down(
        self, reads: Sequence[Cell], written: Sequence[Cell], inherited: set[Cell]
    ) -> None:
        """One step less depends on what was read; a block nobody waits for is recycled."""
        for cell in reads:
            self.counter[cell] -= 1
        for cell in dict.fromkeys((*reads, *written)):
            if not cell.external and self.counter[cell] == 0 and cell not in inherited:
                self.box.put(self.block_of[cell])


def _distinct(cells: Sequence[Cell], values: Iterable[int]) -> list[Cell]:
    return list(dict.fromkeys(cells[value] for value in values))
