"""Budgets of memory for the models of a project, checked without loading or running one.

The bytes are those of plans for a named instruction set: the same in every run,
whatever else the processor has.
"""

from tightship.budget.budget import Budget, BudgetResult
from tightship.budget.budget_file import BudgetFile, read_budgets
from tightship.budget.check import check_budgets
from tightship.budget.isa import Isa
from tightship.budget.lock import Locked, locked, read_lock, write_lock
from tightship.budget.planning import IsaPlanner
from tightship.budget.training import Training

__all__ = [
    "Budget",
    "BudgetFile",
    "BudgetResult",
    "Isa",
    "IsaPlanner",
    "Locked",
    "Training",
    "check_budgets",
    "locked",
    "read_budgets",
    "read_lock",
    "write_lock",
]
