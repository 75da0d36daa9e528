"""Where each buffer lives: a schedule or a problem in, a verified plan out. Pure functions."""

from tightship.planner.bound import lower_bound
from tightship.planner.comparison import compare
from tightship.planner.constraints import Bank, Constraints, ForbiddenRange
from tightship.planner.liveness import Buffers, problem_of
from tightship.planner.penalties import ReusePenalties
from tightship.planner.plan import Plan, PlanStatus
from tightship.planner.portfolio import solve
from tightship.planner.problem import Problem
from tightship.planner.reuse import reduce_reuse
from tightship.planner.schedule import Alias, AliasKind, Schedule, ScheduledValue, Step
from tightship.planner.schedule_plan import SchedulePlan, plan_schedule
from tightship.planner.verify import verify, verify_offsets
from tightship.planner.verify_reuse import verified_reuse_cost

__all__ = [
    "Alias",
    "AliasKind",
    "Bank",
    "Buffers",
    "Constraints",
    "ForbiddenRange",
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
    "plan_schedule",
    "problem_of",
    "reduce_reuse",
    "solve",
    "verified_reuse_cost",
    "verify",
    "verify_offsets",
]
