"""Reads and writes the buffers of a plan file as columns.

The C++ core reads and writes buffers without constraints. All others, and files that are not plans,
are read buffer by buffer, so that an error can name the field.
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
    """Columns in the order of `COLUMN_KEYS`, with names if there are any.

    `fields` holds each buffer as it was read; it is empty if no buffer has a constraint.
    """

    columns: list[Int64Array]
    names: Names | None
    fields: list[Fields]


def load_plan(path: Path) -> tuple[Fields, PlanRows | None]:
    """Load the fields of a plan file, and its buffers as columns if they have no constraints.

    Returns:
        The fields, and the columns or None. With columns, the field `buffers` is an empty array.

    Raises:
        FormatError: The content is not JSON in UTF-8 or not an object, or a field occurs twice.
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
    """Read the buffers of a plan file, checking each field.

    Raises:
        FormatError: A field is missing, unknown or of another type, or only some buffers have a
            name.
    """
    buffers = head.objects("buffers")
    for buffer in buffers:
        buffer.check_keys(("name", *COLUMN_KEYS), BUFFER_KEYS)
    names = [buffer.optional_text("name") for buffer in buffers]
    named = [name for name in names if name is not None]
    if 0 < len(named) < len(names):
        raise FormatError(
            f"{head.where} names {len(named)} of {len(names)} buffers; name all of them or none."
        )
    columns = [
        np.array([buffer.integer(key) for buffer in buffers], np.int64) for key in COLUMN_KEYS
    ]
    return PlanRows(columns, names_of(named) if named else None, buffers)


def rows_text(plan: Plan) -> bytes:
    """Write the elements of the array of buffers, one a line."""
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
