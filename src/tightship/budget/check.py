"""Plans the models of a project and compares them with their budgets."""

from collections.abc import Iterator
from os import PathLike

from tightship.budget.budget import Budget, BudgetResult
from tightship.budget.budget_file import BudgetFile, read_budgets
from tightship.budget.isa import Isa, checked_isa
from tightship.budget.planning import IsaPlanner
from tightship.errors import FormatError, GraphError, InputError, TightshipError


def check_budgets(
    file: str | PathLike[str] | BudgetFile | None = None, *, isa: str | None = None
) -> list[BudgetResult]:
    """Plan every model that has a budget, without loading one.

    Args:
        file: File of budgets, or a folder with one, as for `read_budgets`.
        isa: Instruction set to plan for; by default that of the file, or `avx2`.

    Raises:
        FormatError, InputError, GraphError: A file of budgets or a model cannot be read, or the
            machine lacks the instruction set.
    """
    budgets = file if isinstance(file, BudgetFile) else read_budgets(file)
    chosen: Isa = budgets.isa if isa is None else checked_isa(isa)
    with IsaPlanner(chosen) as planner:
        planner.start()
        return list(_planned(budgets.budgets, planner))


def _planned(budgets: tuple[Budget, ...], planner: IsaPlanner) -> Iterator[BudgetResult]:
    for budget in budgets:
        try:
            plan = planner.plan(
                budget.model, budget.shapes, budget.threads, training=budget.training
            )
        except (FormatError, GraphError, InputError) as error:
            raise _named(error, budget) from None
        yield BudgetResult(budget, plan)


def _named(error: TightshipError, budget: Budget) -> TightshipError:
    """Return the error with the name of the budget, unless it names the model itself."""
    text = str(error)
    if budget.model.name in text:
        return error
    return type(error)(f"`{budget.title}`: {text}")
