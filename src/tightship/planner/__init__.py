"""Pure functions that assign memory: a schedule or a problem in, a verified plan out."""

from typing import TYPE_CHECKING

from tightship.late_names import late_names
from tightship.planner.plan import Conflict, Goal, Plan, PlanStatus
from tightship.planner.problem import Problem
from tightship.planner.schedule import Alias, AliasKind, Schedule, ScheduledValue, Step
from tightship.planner.schedule_plan import Buffers, SchedulePlan
from tightship.planner.verify import verify, verify_offsets

if TYPE_CHECKING:
    from tightship.planner.bound import lower_bound
    from tightship.planner.comparison import compare
    from tightship.planner.constraints import Bank, Constraints, ForbiddenRange
    from tightship.planner.liveness import problem_of
    from tightship.planner.penalties import ReusePenalties
    from tightship.planner.planning import place_schedule
    from tightship.planner.portfolio import place
    from tightship.planner.reuse import reduce_reuse
    from tightship.planner.verify_reuse import verified_reuse_cost
else:
    __getattr__ = late_names(
        __name__,
        bound="lower_bound",
        comparison="compare",
        constraints="Bank Constraints ForbiddenRange",
        liveness="problem_of",
        penalties="ReusePenalties",
        planning="place_schedule",
        portfolio="place",
        reuse="reduce_reuse",
        verify_reuse="verified_reuse_cost",
    )

__all__ = [
    "Alias",
    "AliasKind",
    "Bank",
    "Buffers",
    "Conflict",
    "Constraints",
    "ForbiddenRange",
    "Goal",
    "Plan",
    "PlanStatus",
    "Problem",
    "ReusePenalties",
    "Schedule",
    "SchedulePlan",
    "ScheduledValue",
    "Step",
    "compare",
    "lower_bound",
    "place",
    "place_schedule",
    "problem_of",
    "reduce_reuse",
    "verified_reuse_cost",
    "verify",
    "verify_offsets",
]
