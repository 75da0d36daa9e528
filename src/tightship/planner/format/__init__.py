"""Files of the planner: minimalloc's CSV and the plan file."""

from tightship.planner.format.minimalloc_csv import read_csv, write_csv
from tightship.planner.format.plan_file import read_plan, write_plan

__all__ = ["read_csv", "read_plan", "write_csv", "write_plan"]
