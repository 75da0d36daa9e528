"""Defines a plan: an offset for every buffer of a problem, with a lower bound on the peak."""

from dataclasses import dataclass, field
from typing import Literal

import numpy as np

from tightship.brief import brief
from tightship.planner.problem import Int64Array, Problem
from tightship.public_calls import public_methods

Goal = Literal["fit", "minimize"]
"""`fit`: accept any plan within the capacity. `minimize`: look for the smallest."""

PlanStatus = Literal["optimal", "feasible", "infeasible", "budget"]
"""`optimal`: no plan has a smaller peak. `feasible`: fits, not proved smallest. `infeasible`:
proved that no plan fits the capacity. `budget`: the effort ended with neither plan nor proof."""


@brief
@dataclass(frozen=True, slots=True)
class Conflict:
    """Buffers that no placement puts within the capacity together.

    Attributes:
        buffers: Indices in increasing order.
        is_minimal: Whether the others fit if any one of the buffers is left out.
    """

    buffers: tuple[int, ...]
    is_minimal: bool


@public_methods
@dataclass(frozen=True, slots=True, eq=False)
class Plan:
    """Offsets of n buffers, with the strategy that found them and what is proved about them.

    With banks, offsets count from the base of each buffer's bank. `lower_bound_bytes` then holds
    for plans of the same cost, and `optimal` means that no plan costs less, and no plan of the same
    cost has a smaller peak.

    A plan that does not fit its capacity (`infeasible`, `budget`) holds the offsets of the smallest
    peak that was found. An `infeasible` plan of up to a few thousand buffers names a `conflict`.

    Attributes:
        problem: The n buffers.
        offset_bytes: Offsets from the arena's base in bytes; int64 of shape (n,), read-only.
        strategy: Name of the placement that found the offsets.
        lower_bound_bytes: A number of bytes below which no plan has its peak.
        status: What is proved about the plan.
        bank: The bank of each buffer; int64 of shape (n,), None without banks.
        conflict: Buffers that prove that no plan fits; None without such a proof.
    """

    problem: Problem
    offset_bytes: Int64Array
    strategy: str
    lower_bound_bytes: int
    status: PlanStatus
    bank: Int64Array | None = None
    conflict: Conflict | None = None
    _bank_peaks: tuple[int, ...] | None = field(default=None, init=False, repr=False)
    """`bank_peak_bytes` once it was asked for: checks of large programs ask for each step."""

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
        """Bytes that the arenas need: the sum over banks of the largest offset + size."""
        return sum(self.bank_peak_bytes)

    @property
    def bank_peak_bytes(self) -> tuple[int, ...]:
        """Largest offset + size in each bank; 0 for an empty bank."""
        if self._bank_peaks is None:
            object.__setattr__(self, "_bank_peaks", self._found_peaks())
        assert self._bank_peaks is not None
        return self._bank_peaks

    def _found_peaks(self) -> tuple[int, ...]:
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
        """Sum of the banks' charges for the bytes of all buffers; 0 without banks."""
        if self.bank is None or self.problem.constraints is None:
            return 0
        return sum(
            int(self.problem.size_bytes[self.bank == index].sum()) * bank.cost_per_byte
            for index, bank in enumerate(self.problem.constraints.banks)
        )

    @property
    def gap(self) -> float:
        """Relative distance to the bound, `peak_bytes / lower_bound_bytes - 1`; 0.0 if equal."""
        if self.peak_bytes == self.lower_bound_bytes:
            return 0.0
        return self.peak_bytes / self.lower_bound_bytes - 1

    @property
    def fits(self) -> bool:
        """Whether the plan stays within the capacities of the problem and of its banks."""
        constraints = self.problem.constraints
        limits = [bank.capacity_bytes for bank in constraints.banks] if constraints else []
        limits = limits or [self.problem.capacity_bytes]
        peaks = self.bank_peak_bytes
        return all(
            limit is None or peak <= limit for peak, limit in zip(peaks, limits, strict=True)
        )


def status_of(plan: Plan) -> PlanStatus:
    """Derive the status of a plan without banks from its peak, bound and capacity."""
    capacity = plan.problem.capacity_bytes
    if capacity is not None and plan.lower_bound_bytes > capacity:
        return "infeasible"
    if not plan.fits:
        return "budget"
    return "optimal" if plan.peak_bytes == plan.lower_bound_bytes else "feasible"
