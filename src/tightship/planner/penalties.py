"""Defines costs of pairs of buffers that share bytes."""

from dataclasses import dataclass

import numpy as np

from tightship.brief import brief
from tightship.errors import PlanError
from tightship.planner.problem import Int64Array
from tightship.public_calls import public_methods

COST_MAX = 2**40


@brief
@public_methods
@dataclass(frozen=True, slots=True, eq=False)
class ReusePenalties:
    """m pairs of buffers, each with a cost that is due if the two share a byte.

    `rows` holds first buffer, second buffer and cost: int64 of shape (m, 3), copied and made
    read-only.

    Raises:
        PlanError: `rows` has another type or shape, a pair names one buffer twice, or a cost is
            outside [0, 2**40].
    """

    rows: Int64Array

    def __post_init__(self) -> None:
        if self.rows.dtype != np.int64 or self.rows.ndim != 2 or self.rows.shape[1] != 3:
            raise PlanError(
                f"Penalties are {self.rows.dtype} of shape {self.rows.shape}; they must be int64 "
                "of shape (m, 3)."
            )
        rows = np.array(self.rows)
        rows.flags.writeable = False
        object.__setattr__(self, "rows", rows)
        first, second, cost = rows.T
        for index in np.flatnonzero((first == second) | (cost < 0) | (cost > COST_MAX))[:1]:
            raise PlanError(
                f"Penalty {index} of buffers {first[index]} and {second[index]} costs "
                f"{cost[index]}; the buffers must differ, and the cost lie in [0, {COST_MAX}]."
            )
