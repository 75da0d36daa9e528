"""Compares memory plans: which tensors, steps and weights moved the peak."""

from tightship.difference.change import Cause, Change, ChangeKind, PlanDifference
from tightship.difference.compare import compare_plans
from tightship.difference.plans import AnyPlan, HasPicture, read_plan

__all__ = [
    "AnyPlan",
    "Cause",
    "Change",
    "ChangeKind",
    "HasPicture",
    "PlanDifference",
    "compare_plans",
    "read_plan",
]
