"""Where every buffer of a problem lies, and how far that is from the best."""

from dataclasses import dataclass
from typing import Literal

import numpy as np

from tightship.planner.problem import Int64Array, Problem

Goal = Literal["fit", "minimize"]
"""`fit`: any plan within the capacity. `minimize`: the smallest."""

PlanStatus = Literal["optimal", "feasible", "infeasible", "budget"]
"""`optimal`: no plan has a smaller peak. `feasible`: fits, not proved smallest. `infeasible`:
proved that no plan fits the capacity. `budget`: none was found that fits, and none excluded."""


@dataclass(frozen=True, slots=True)
class Conflict:
    """Buffers, by rising index, that no placement puts within the capacity together.

    `is_minimal`: without any one of them the others do fit.
    """

    buffers: tuple[int, ...]
    is_minimal: bool


@dataclass(frozen=True, slots=True, eq=False)
class Plan:
    """Offsets of n buffers, int64 of shape (n,), read-only, in bytes from the arena's base.

    With banks, `bank` holds the bank of each buffer, and offsets count from its base;
    `lower_bound_bytes` is then about plans that cost as little, and `optimal` says that no plan
    costs less, and none that costs as little has a smaller peak.

    A plan that does not fit its capacity (`infeasible`, `budget`) still holds the offsets of the
    smallest peak found. An `infeasible` one of a few thousand buffers names a `conflict`.
    """

    problem: Problem
    offset_bytes: Int64Array
    strategy: str
    lower_bound_bytes: int
    status: PlanStatus
    bank: Int64Array | None = None
    conflict: Conflict | None = None

    def __post_init__(self) -> None:
        for name in ("offset_bytes", "bank"):
            if getattr(self, name) is not None:
                column = np.array(getattr(self, name), np.int64)
                column.flags.writeable = False
                object.__setattr__(self, name, column)

    def __repr__(self) -> str:
        buffers = f"{self.problem.count} buffers in {self.peak_bytes} bytes"
        return f"<tightship.Plan {self.status}: {buffers} ({self.strategy})>"

    @property
    def peak_bytes(self) -> int:
        """Bytes the arenas need, the sum over banks of the largest offset + size."""
        return sum(self.bank_peak_bytes)

    @property
    def bank_peak_bytes(self) -> tuple[int, ...]:
        """The largest offset + size in each bank; 0 where nothing lies."""
        tops = self.offset_bytes + self.problem.size_bytes
        if self.bank is None:
            return (int(tops.max(initial=0)),)
        assert self.problem.constraints is not None
        return tuple(
            int(tops[self.bank == bank].max(initial=0))
            for bank in range(self.problem.constraints.bank_count)
        )

    @property
    def cost(self) -> int:
        """What the banks charge for the bytes of all buffers; 0 without banks."""
        if self.bank is None or self.problem.constraints is None:
            return 0
        return sum(
            int(self.problem.size_bytes[self.bank == index].sum()) * bank.cost_per_byte
            for index, bank in enumerate(self.problem.constraints.banks)
        )

    @property
    def gap(self) -> float:
        """`peak_bytes / lower_bound_bytes - 1`; 0.0 where both are 0."""
        if self.peak_bytes == self.lower_bound_bytes:
            return 0.0
        return self.peak_bytes / self.lower_bound_bytes - 1

    @property
    def fits(self) -> bool:
        """Whether the capacity of the problem and of each bank, if there is one, holds the plan."""
        constraints = self.problem.constraints
        limits = [bank.capacity_bytes for bank in constraints.banks] if constraints else []
        limits = limits or [self.problem.capacity_bytes]
        peaks = self.bank_peak_bytes
        return all(
            limit is None or peak <= limit for peak, limit in zip(peaks, limits, strict=True)
        )


def status_of(plan: Plan) -> PlanStatus:
    """What a plan's peak, bound and capacity prove; one without banks."""
    capacity = plan.problem.capacity_bytes
    if capacity is not None and plan.lower_bound_bytes > capacity:
        return "infeasible"
    if not plan.fits:
        return "budget"
    return "optimal" if plan.peak_bytes == plan.lower_bound_bytes else "feasible"
