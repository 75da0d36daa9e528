"""The buffers of a plan file, as columns.

Those without constraints are read and written by the core; the others, and what is no plan, one by
one, so that what is wrong is named.
"""

import json
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from tightship._core import read_plan_rows, write_plan_rows
from tightship.errors import FormatError
from tightship.planner.format.json_fields import Fields, load_json
from tightship.planner.format.plan_constraints import BUFFER_KEYS, HEAD_KEYS, buffer_fields
from tightship.planner.names import Names, names_of
from tightship.planner.plan import Plan
from tightship.planner.problem import Int64Array

COLUMN_KEYS = ("size_bytes", "alignment", "start_step", "stop_step", "offset_bytes")


@dataclass(frozen=True, slots=True, eq=False)
class PlanRows:
    """Columns in the order of `COLUMN_KEYS`, names if there are any.

    `fields` holds each buffer as it was read, or nothing where none has a constraint.
    """

    columns: list[Int64Array]
    names: Names | None
    fields: list[Fields]


def load_plan(path: Path) -> tuple[Fields, PlanRows | None]:
    """The fields of a plan file; those of its buffers too, if they have nothing but `COLUMN_KEYS`.

    The field `buffers` is then an empty array in what is returned.

    Raises:
        FormatError: Not JSON in UTF-8, no object, or a field is there twice.
        OSError: The file cannot be read.
    """
    content = path.read_bytes()
    found = read_plan_rows(content) if content.isascii() or _is_utf8(content) else None
    if found is not None:
        columns, names, begin, end = found
        head = Fields(f"`{path}`", load_json(path, content[:begin] + b"[]" + content[end:]))
        if not any(key in head.raw for key in HEAD_KEYS):
            return head, PlanRows(columns, None if names is None else Names(*names), [])
    return Fields(f"`{path}`", load_json(path, content)), None


def read_rows(head: Fields) -> PlanRows:
    """The buffers of a plan file, each field checked.

    Raises:
        FormatError: A field is missing, unknown or of another type, or only some have a name.
    """
    buffers = head.objects("buffers")
    for buffer in buffers:
        buffer.check_keys(("name", *COLUMN_KEYS), BUFFER_KEYS)
    names = [buffer.optional_text("name") for buffer in buffers]
    named = [name for name in names if name is not None]
    if 0 < len(named) < len(names):
        raise FormatError(f"{head.where} names {len(named)} of {len(names)} buffers; all or none.")
    columns = [
        np.array([buffer.integer(key) for buffer in buffers], np.int64) for key in COLUMN_KEYS
    ]
    return PlanRows(columns, names_of(named) if named else None, buffers)


def rows_text(plan: Plan) -> bytes:
    """The elements of the array of buffers, a line each."""
    problem = plan.problem
    columns = [
        problem.size_bytes,
        problem.alignment,
        problem.start_step,
        problem.stop_step,
        plan.offset_bytes,
    ]
    names = None if problem.names is None else names_of(problem.names)
    text, stops = (None, np.zeros(0, np.int64)) if names is None else (names.text, names.stop)
    rows = write_plan_rows([np.ascontiguousarray(column) for column in columns], text, stops)
    if problem.constraints is None:
        return rows
    more = buffer_fields(problem.constraints, plan.bank, problem.count)
    lines = rows.split(b"\n")
    for index, fields in enumerate(more):
        if fields:
            inside, brace, comma = lines[index].rpartition(b"}")
            lines[index] = inside + f", {json.dumps(fields)[1:-1]}".encode() + brace + comma
    return b"\n".join(lines)


def _is_utf8(content: bytes) -> bool:
    try:
        content.decode()
    except UnicodeDecodeError:
        return False
    return True
