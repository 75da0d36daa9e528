"""The CSV that minimalloc reads and writes: one buffer a line.

    id,lower,upper,size[,alignment][,offset]

Steps are half-open, `[lower, upper)`; a column named `end` instead of `upper` holds the last
step itself. Sizes, alignments and offsets are in bytes; the alignment is 1 where not given.
"""

import csv
import io
import re
from pathlib import Path

import numpy as np

from tightship.errors import FormatError, PlanError
from tightship.planner.format.atomic import write_text
from tightship.planner.problem import Int64Array, Problem

REQUIRED = ("id", "lower", "size")
STOPS = ("upper", "end")
OPTIONAL = ("alignment", "offset")

INT64_MAX = 2**63 - 1
_INTEGER = re.compile(r"\s*[+-]?[0-9]{1,1000}\s*", re.ASCII)


def read_csv(path: Path, *, capacity_bytes: int | None = None) -> tuple[Problem, Int64Array | None]:
    """Read buffers, and their offsets if there is a column of them.

    Columns may come in any order, lines may end in CRLF, and empty lines are skipped. Offsets
    are returned as they are; `verify_offsets` judges them.

    Args:
        path: The file.
        capacity_bytes: The capacity of the problem; the file holds none.

    Raises:
        FormatError: A column is missing, unknown or there twice, a line has too few or too many
            fields, a number is none or out of range, or an `id` repeats. Line and column are named.
        OSError: The file cannot be read.
    """
    try:
        reader = csv.reader(io.StringIO(path.read_bytes().decode("utf-8-sig"), newline=""))
        lines = [(reader.line_num, row) for row in reader if row]
    except (UnicodeDecodeError, csv.Error) as error:
        raise FormatError(f"`{path}` is not a CSV file in UTF-8: {error}.") from error
    if not lines:
        raise FormatError(f"`{path}` is empty; its first line must name the columns.")
    header = [name.strip() for name in lines[0][1]]
    _check_header(path, header)
    rows = [_Row(path, line, header, row) for line, row in lines[1:]]
    _check_ids(rows)
    try:
        problem = Problem(
            _column([row.integer("size") for row in rows]),
            _column([row.integer("lower") for row in rows]),
            _column([row.stop_step() for row in rows]),
            _column([row.alignment() for row in rows]),
            tuple(row.fields["id"] for row in rows),
            capacity_bytes,
        )
    except PlanError as error:
        raise FormatError(f"`{path}`: {error}") from error
    offsets = _column([row.integer("offset") for row in rows]) if "offset" in header else None
    return problem, offsets


def write_csv(path: Path, problem: Problem, offset_bytes: Int64Array | None = None) -> None:
    """Write buffers, and their offsets if given, so that `read_csv` returns the same.

    Buffers without a name get their index as `id`. The column `alignment` is written if any
    alignment is not 1. The capacity is not written.

    Raises:
        OSError: The file cannot be written; an older one is then untouched.
    """
    names = problem.names or tuple(str(index) for index in range(problem.count))
    columns: dict[str, list[str] | list[int]] = {
        "id": list(names),
        "lower": problem.start_step.tolist(),
        "upper": problem.stop_step.tolist(),
        "size": problem.size_bytes.tolist(),
    }
    if (problem.alignment != 1).any():
        columns["alignment"] = problem.alignment.tolist()
    if offset_bytes is not None:
        columns["offset"] = offset_bytes.tolist()
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows(zip(*columns.values(), strict=True))
    write_text(path, text.getvalue())


class _Row:
    """One line, field by field."""

    def __init__(self, path: Path, line: int, header: list[str], fields: list[str]) -> None:
        self.where = f"`{path}`, line {line}"
        if len(fields) != len(header):
            raise FormatError(
                f"{self.where} has {len(fields)} fields; the header names {len(header)} columns."
            )
        self.fields = dict(zip(header, fields, strict=True))

    def integer(self, column: str) -> int:
        """The non-negative int64 in a column."""
        text = self.fields[column]
        if not _INTEGER.fullmatch(text):
            raise FormatError(
                f"{self.where}, column `{column}`: {text[:40]!r} is not an integer in digits."
            )
        if not 0 <= int(text) <= INT64_MAX:
            raise FormatError(
                f"{self.where}, column `{column}`: {text.strip()[:40]} is outside [0, {INT64_MAX}]."
            )
        return int(text)

    def alignment(self) -> int:
        """The column `alignment`, or 1."""
        if "alignment" not in self.fields:
            return 1
        alignment = self.integer("alignment")
        if alignment < 1 or alignment & (alignment - 1):
            raise FormatError(
                f"{self.where}, column `alignment`: {alignment} is not a power of two."
            )
        return alignment

    def stop_step(self) -> int:
        """The first step after the lifetime."""
        column = "end" if "end" in self.fields else "upper"
        start, stop = self.integer("lower"), self.integer(column) + (column == "end")
        if not start < stop <= INT64_MAX:
            raise FormatError(
                f"{self.where}, column `{column}`: a lifetime of [{start}, {stop}) holds no step."
            )
        return stop


def _check_header(path: Path, header: list[str]) -> None:
    known = (*REQUIRED, *STOPS, *OPTIONAL)
    for position, name in enumerate(header):
        if name not in known:
            raise FormatError(
                f"`{path}`, line 1: column `{name}` is unknown; the columns are "
                f"{', '.join(f'`{column}`' for column in known)}."
            )
        if name in header[:position]:
            raise FormatError(f"`{path}`, line 1: column `{name}` is there twice.")
    for name in REQUIRED:
        if name not in header:
            raise FormatError(f"`{path}`, line 1: column `{name}` is missing.")
    if sum(name in header for name in STOPS) != 1:
        raise FormatError(
            f"`{path}`, line 1: there must be one of the columns `upper` (the step after the "
            "last) and `end` (the last step)."
        )


def _check_ids(rows: list[_Row]) -> None:
    seen: set[str] = set()
    for row in rows:
        name = row.fields["id"]
        if name in seen:
            raise FormatError(f"{row.where}, column `id`: `{name[:40]}` is there twice.")
        seen.add(name)


def _column(values: list[int]) -> Int64Array:
    return np.array(values, np.int64)
