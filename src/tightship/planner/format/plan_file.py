"""The plan file: a problem and its plan in JSON, checked to the last field when read.

{"format": "tightship-plan", "version": 1, "strategy": ..., "status": ...,
 "peak_bytes": ..., "lower_bound_bytes": ..., "capacity_bytes": ... or null,
 "buffers": [{"name": ... or null, "size_bytes": ..., "alignment": ...,
              "start_step": ..., "stop_step": ..., "offset_bytes": ...}, ...]}

Fields of constraints are described in `plan_constraints`.
"""

import json
from json.encoder import encode_basestring
from pathlib import Path
from typing import cast, get_args

import numpy as np

from tightship.errors import FormatError, PlanError
from tightship.planner.format.atomic import write_text
from tightship.planner.format.json_fields import Fields, load_json
from tightship.planner.format.plan_constraints import (
    BUFFER_KEYS,
    HEAD_KEYS,
    buffer_fields,
    head_fields,
    read_bank_of,
    read_constraints,
)
from tightship.planner.plan import Plan, PlanStatus
from tightship.planner.problem import Int64Array, Problem
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
COLUMN_KEYS = ("size_bytes", "alignment", "start_step", "stop_step", "offset_bytes")


def write_plan(path: Path, plan: Plan) -> None:
    """Write a plan so that `read_plan` returns the same.

    Raises:
        OSError: The file cannot be written; an older one is then untouched.
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
    buffers = _rows(plan)
    if problem.constraints is not None:
        head |= head_fields(problem.constraints)
        more = buffer_fields(problem.constraints, plan.bank, problem.count)
        buffers = [
            f"{row}, {json.dumps(fields)[1:-1]}" if fields else row
            for row, fields in zip(buffers, more, strict=True)
        ]
    opening = json.dumps(head, ensure_ascii=False, indent=1).removesuffix("\n}")
    body = "},\n  {".join(buffers)
    rows = f"{{{body}}}" if buffers else ""
    write_text(path, f'{opening},\n "buffers": [\n  {rows}\n ]\n}}\n')


def read_plan(path: Path) -> Plan:
    """Read a plan and verify it.

    Raises:
        FormatError: Not JSON, another format or version, a key missing, unknown or there twice,
            or a value of another type or out of range. The field is named.
        InvalidPlanError: The file is well formed, but its plan would corrupt memory or does not
            have the numbers it states.
        OSError: The file cannot be read.
    """
    fields = Fields(f"`{path}`", load_json(path))
    if fields.raw.get("format") != FORMAT:
        raise FormatError(f"`{path}` is not a plan file: `format` must be `{FORMAT}`.")
    version = fields.integer("version")
    if version != VERSION:
        raise FormatError(f"`{path}` has version {version}; this reader knows version {VERSION}.")
    fields.check_keys(PLAN_KEYS, HEAD_KEYS)
    buffers = fields.objects("buffers")
    for buffer in buffers:
        buffer.check_keys(("name", *COLUMN_KEYS), BUFFER_KEYS)
    names = [buffer.optional_text("name") for buffer in buffers]
    named = tuple(name for name in names if name is not None)
    if 0 < len(named) < len(names):
        raise FormatError(f"`{path}` names {len(named)} of {len(names)} buffers; all or none.")
    columns = {key: _column(buffers, key) for key in COLUMN_KEYS}
    offset_bytes = columns.pop("offset_bytes")
    capacity = None if fields.raw["capacity_bytes"] is None else fields.integer("capacity_bytes")
    try:
        problem = Problem(
            columns["size_bytes"],
            columns["start_step"],
            columns["stop_step"],
            columns["alignment"],
            named or None,
            capacity,
            read_constraints(fields, buffers),
        )
    except PlanError as error:
        raise FormatError(f"`{path}`: {error}") from error
    bound = fields.integer("lower_bound_bytes")
    bank = read_bank_of(buffers, problem.constraints)
    plan = Plan(problem, offset_bytes, fields.text("strategy"), bound, _status(fields), bank)
    if plan.peak_bytes != fields.integer("peak_bytes"):
        raise FormatError(
            f"`{path}` states peak_bytes={fields.integer('peak_bytes')}; its offsets end at "
            f"{plan.peak_bytes}."
        )
    verify(plan)
    return plan


def _rows(plan: Plan) -> list[str]:
    """The fields of each buffer."""
    problem = plan.problem
    names = problem.names
    quoted = ["null"] * problem.count if names is None else [encode_basestring(n) for n in names]
    columns = (
        problem.size_bytes,
        problem.alignment,
        problem.start_step,
        problem.stop_step,
        plan.offset_bytes,
    )
    rows = zip(quoted, *(column.tolist() for column in columns), strict=True)
    return [
        f'"name": {name}, "size_bytes": {size}, "alignment": {alignment}, "start_step": {start}, '
        f'"stop_step": {stop}, "offset_bytes": {offset}'
        for name, size, alignment, start, stop, offset in rows
    ]


def _column(buffers: list[Fields], key: str) -> Int64Array:
    return np.array([buffer.integer(key) for buffer in buffers], np.int64)


def _status(fields: Fields) -> PlanStatus:
    status = fields.text("status")
    if status not in get_args(PlanStatus):
        raise FormatError(
            f"{fields.where}: `status` is {json.dumps(status)[:40]}; it must be one of "
            f"{', '.join(get_args(PlanStatus))}."
        )
    return cast("PlanStatus", status)
