"""Reads and writes the planner's files: minimalloc's CSV, plan files and further forms."""

from typing import TYPE_CHECKING

from tightship.late_names import late_names

if TYPE_CHECKING:
    from tightship.planner.format.minimalloc_csv import read_csv, write_csv
    from tightship.planner.format.plan_file import read_plan, write_plan
    from tightship.planner.format.reuse_problem import read_reuse_problem
else:
    __getattr__ = late_names(
        __name__,
        minimalloc_csv="read_csv write_csv",
        plan_file="read_plan write_plan",
        reuse_problem="read_reuse_problem",
    )

__all__ = ["read_csv", "read_plan", "read_reuse_problem", "write_csv", "write_plan"]
