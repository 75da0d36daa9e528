"""Reads and writes the planner's files: minimalloc's CSV, plan files and further forms."""

from tightship.planner.format.minimalloc_csv import read_csv, write_csv
from tightship.planner.format.plan_file import read_plan, write_plan
from tightship.planner.format.reuse_problem import read_reuse_problem

__all__ = ["read_csv", "read_plan", "read_reuse_problem", "write_csv", "write_plan"]
