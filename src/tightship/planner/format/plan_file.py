"""Reads and writes plan files: a problem and its plan in JSON, every field checked.

{"format": "tightship-plan", "version": 1, "strategy": ..., "status": ...,
 "peak_bytes": ..., "lower_bound_bytes": ..., "capacity_bytes": ... or null,
 "buffers": [{"name": ... or null, "size_bytes": ..., "alignment": ...,
              "start_step": ..., "stop_step": ..., "offset_bytes": ...}, ...]}

The module `plan_constraints` describes the fields of constraints.
"""

import json
from pathlib import Path
from typing import cast, get_args

from tightship.atomic_file import write_bytes
from tightship.errors import FormatError, PlanError
from tightship.planner.format.json_fields import Fields
from tightship.planner.format.plan_constraints import (
    HEAD_KEYS,
    head_fields,
    read_bank_of,
    read_constraints,
)
from tightship.planner.format.plan_rows import PlanRows, load_plan, read_rows, rows_text
from tightship.planner.plan import Plan, PlanStatus
from tightship.planner.problem import Problem
from tightship.planner.verify import verify

FORMAT = "tightship-plan"
VERSION = 1

PLAN_KEYS = (
    "format",
    "version",
    "strategy",
    "status",
    "peak_bytes",
    "lower_bound_bytes",
    "capacity_bytes",
    "buffers",
)


def write_plan(path: Path, plan: Plan) -> None:
    """Write a plan so that `read_plan` returns the same.

    Raises:
        OSError: The file cannot be written; an older file is then untouched.
    """
    problem = plan.problem
    head: dict[str, object] = {
        "format": FORMAT,
        "version": VERSION,
        "strategy": plan.strategy,
        "status": plan.status,
        "peak_bytes": plan.peak_bytes,
        "lower_bound_bytes": plan.lower_bound_bytes,
        "capacity_bytes": problem.capacity_bytes,
    }
    if problem.constraints is not None:
        head |= head_fields(problem.constraints)
    opening = json.dumps(head, ensure_ascii=False, indent=1).removesuffix("\n}").encode()
    write_bytes(path, opening + b',\n "buffers": [\n  ' + rows_text(plan) + b"\n ]\n}\n")


def read_plan(path: Path) -> Plan:
    """Read a plan and verify it.

    Raises:
        FormatError: The content is not JSON, has another format or version, a key is missing,
            unknown or occurs twice, or a value has another type or is out of range. The message
            names the field.
        InvalidPlanError: The file is well formed, but its plan would corrupt memory, or its
            numbers contradict the ones that it states.
        OSError: The file cannot be read.
    """
    return plan_of(path, *load_plan(path))


def plan_of(path: Path, fields: Fields, rows: PlanRows | None) -> Plan:
    """Make the plan that `load_plan` loaded from a file, and verify it; raises as `read_plan`."""
    if fields.raw.get("format") != FORMAT:
        raise FormatError(f"`{path}` is not a plan file: `format` must be `{FORMAT}`.")
    version = fields.integer("version")
    if version != VERSION:
        raise FormatError(f"`{path}` has version {version}; this reader knows version {VERSION}.")
    fields.check_keys(PLAN_KEYS, HEAD_KEYS)
    if rows is None:
        rows = read_rows(fields)
    size_bytes, alignment, start_step, stop_step, offset_bytes = rows.columns
    capacity = None if fields.raw["capacity_bytes"] is None else fields.integer("capacity_bytes")
    try:
        problem = Problem(
            size_bytes,
            start_step,
            stop_step,
            alignment,
            rows.names,
            capacity,
            read_constraints(fields, rows.fields),
        )
    except PlanError as error:
        raise FormatError(f"`{path}`: {error}") from error
    bound = fields.integer("lower_bound_bytes")
    bank = read_bank_of(rows.fields, problem.constraints)
    plan = Plan(problem, offset_bytes, fields.text("strategy"), bound, _status(fields), bank)
    if plan.peak_bytes != fields.integer("peak_bytes"):
        raise FormatError(
            f"`{path}` states peak_bytes={fields.integer('peak_bytes')}; its offsets end at "
            f"{plan.peak_bytes}."
        )
    verify(plan)
    return plan


def _status(fields: Fields) -> PlanStatus:
    status = fields.text("status")
    if status not in get_args(PlanStatus):
        raise FormatError(
            f"{fields.where}: `status` is {json.dumps(status)[:40]}; it must be one of "
            f"{', '.join(get_args(PlanStatus))}."
        )
    return cast("PlanStatus", status)
