"""Decides by search whether the items of a problem with constraints fit their banks."""

from dataclasses import dataclass
from functools import cached_property
from typing import cast

import numpy as np

from tightship._core import StopFlag, search_items
from tightship.planner.constrained.items import Items, disjoint, items_of
from tightship.planner.constraints import Constraints
from tightship.planner.placements.exact import Verdict
from tightship.planner.problem import Int64Array, Problem

UNITS_MAX = 2**61
"""Larger than any limit, offset or cost, in units of `ItemSearch.unit_bytes`."""


@dataclass(frozen=True, slots=True)
class Within:
    """Limits of a placement besides the capacities of banks; None is no limit.

    Attributes:
        cost: Highest sum of the banks' charges.
        peak_bytes: Highest sum of the banks' peaks.
    """

    cost: int | None = None
    peak_bytes: int | None = None


@dataclass(frozen=True, slots=True, eq=False)
class ItemFit:
    """The result of a search for a placement of items.

    Attributes:
        verdict: Whether a placement was found, excluded, or neither.
        offset_bytes: Offsets of shape (n,) if the verdict is `fits`, otherwise empty.
        bank: Banks of shape (n,) if the verdict is `fits`, otherwise empty.
        conflict: Indices of buffers that do not fit together, in increasing order, if the verdict
            is `infeasible`, otherwise empty.
        effort: Pairs of items that were compared.
    """

    verdict: Verdict
    offset_bytes: Int64Array
    bank: Int64Array
    conflict: Int64Array
    effort: int


@dataclass(frozen=True)
class ItemSearch:
    """A search over the items of a problem, prepared once for several questions."""

    problem: Problem

    @cached_property
    def items(self) -> Items:
        """Items of the problem."""
        return items_of(self.problem)

    @cached_property
    def unit_bytes(self) -> int:
        """Unit in bytes: offsets of placements that cannot be lowered are multiples of it."""
        items, obstacles = self.items, self._obstacles
        alignment, remainder, pinned, *_ = items.columns
        parts = (
            items.rectangles[:, 3:].ravel(),
            obstacles[:, 3:].ravel(),
            alignment[alignment > 1],
            remainder,
            np.maximum(pinned, 0),
            items.offset_bytes,
            self.problem.size_bytes,
        )
        return max(1, int(np.gcd.reduce(np.concatenate(parts), initial=0)))

    def fit(
        self, within: Within, *, effort: int, threads: int = 1, stop: StopFlag | None = None
    ) -> ItemFit:
        """Place items within limits, or prove that it cannot be done.

        The answer depends only on the problem, the limits and the effort, unless `stop` is set. A
        problem with more than 4,000,000 pairs of items that are live together, or with offsets and
        costs that exceed `UNITS_MAX` in total, stays open.

        Args:
            within: The limits. Banks have their capacities; the problem's own is ignored.
            effort: Pairs of items to compare, roughly.
            threads: Threads that may search at once; 1 by default, and more than 2 do not help.
            stop: Flag that ends the search with the verdict `open` when another thread sets it.

        Complexity: exponential in n at worst, within the effort; O(pairs that meet) space.
        Source: as for `fit`; an item is tried at the bases where it rests on another item, which
            for single rectangles is the rule of Moffitt, "MiniMalloc", 2023.
        """
        nothing = np.zeros(0, np.int64)
        charge = int(self._columns[5].sum())
        if charge * int(self._banks[1].max()) >= UNITS_MAX:
            return ItemFit("open", nothing, nothing, nothing, 0)
        cost = UNITS_MAX if within.cost is None else within.cost // self.unit_bytes
        peak = UNITS_MAX if within.peak_bytes is None else within.peak_bytes // self.unit_bytes
        above = cost - charge * int(self._banks[1].min())
        banks = self._banks.copy()
        if banks.shape[1] == 1:
            banks[0] = np.minimum(banks[0], peak)
        answer = search_items(
            self._rectangles,
            self._columns,
            self._in_units(self._obstacles),
            banks,
            (min(above, UNITS_MAX), peak, effort),
            threads,
            stop,
        )
        verdict = cast("Verdict", answer.found.verdict)
        offset_bytes = bank = nothing
        if verdict == "fits":
            of_buffer = self.items.of_buffer
            base = answer.found.offsets * self.unit_bytes
            offset_bytes = base[of_buffer] + self.items.offset_bytes
            bank = answer.banks[of_buffer]
        blamed = np.flatnonzero(np.isin(self.items.of_buffer, answer.found.conflict))
        return ItemFit(verdict, offset_bytes, bank, blamed, answer.found.effort)

    @cached_property
    def _constraints(self) -> Constraints:
        return self.problem.constraints or Constraints()

    @cached_property
    def _obstacles(self) -> Int64Array:
        """Rows of bank, start and stop step, bottom and top of forbidden bytes, disjoint."""
        rows = [
            (place.bank, place.start_step, place.stop_step, place.start_byte, place.stop_byte)
            for place in self._constraints.forbidden
        ]
        return disjoint(np.array(rows, np.int64).reshape(-1, 5))

    @cached_property
    def _rectangles(self) -> Int64Array:
        return self._in_units(self.items.rectangles)

    @cached_property
    def _columns(self) -> Int64Array:
        alignment, remainder, pinned, banks, end, charge = self.items.columns
        unit = self.unit_bytes
        coarse = np.maximum(alignment // unit, 1)
        fixed = np.where(pinned < 0, pinned, pinned // unit)
        return np.stack([coarse, remainder // unit, fixed, banks, end // unit, charge // unit])

    @cached_property
    def _banks(self) -> Int64Array:
        """Rows of each bank's capacity in units and cost for a byte."""
        banks = self._constraints.banks
        capacities = [bank.capacity_bytes for bank in banks] or [None]
        units = [
            UNITS_MAX if capacity is None else min(capacity // self.unit_bytes, UNITS_MAX)
            for capacity in capacities
        ]
        costs = [bank.cost_per_byte for bank in banks] or [0]
        return np.array([units, [min(cost, UNITS_MAX) for cost in costs]], np.int64)

    def _in_units(self, rectangles: Int64Array) -> Int64Array:
        rows = rectangles.copy()
        rows[:, 3:] //= self.unit_bytes
        return rows
