"""Where every buffer of a problem lies, and how far that is from the best."""

from dataclasses import dataclass
from typing import Literal

import numpy as np

from tightship.planner.problem import Int64Array, Problem

PlanStatus = Literal["optimal", "feasible", "infeasible", "budget"]
"""`optimal`: no plan has a smaller peak. `feasible`: fits, not proved smallest. `infeasible`:
proved that no plan fits the capacity. `budget`: none was found that fits, and none excluded."""


@dataclass(frozen=True, slots=True, eq=False)
class Plan:
    """Offsets of n buffers, int64 of shape (n,), read-only, in bytes from the arena's base.

    A plan that does not fit its capacity (`infeasible`, `budget`) still holds the offsets of the
    smallest peak found.
    """

    problem: Problem
    offset_bytes: Int64Array
    strategy: str
    lower_bound_bytes: int
    status: PlanStatus

    def __post_init__(self) -> None:
        offsets = np.array(self.offset_bytes, np.int64)
        offsets.flags.writeable = False
        object.__setattr__(self, "offset_bytes", offsets)

    @property
    def peak_bytes(self) -> int:
        """Bytes the arena needs: the largest offset + size; 0 without buffers."""
        return int((self.offset_bytes + self.problem.size_bytes).max(initial=0))

    @property
    def gap(self) -> float:
        """`peak_bytes / lower_bound_bytes - 1`; 0.0 where both are 0."""
        if self.peak_bytes == self.lower_bound_bytes:
            return 0.0
        return self.peak_bytes / self.lower_bound_bytes - 1

    @property
    def fits(self) -> bool:
        """Whether the capacity, if there is one, holds the plan."""
        capacity = self.problem.capacity_bytes
        return capacity is None or self.peak_bytes <= capacity
