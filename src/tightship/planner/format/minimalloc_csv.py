"""Reads and writes minimalloc's CSV: one buffer a line.

    id,lower,upper,size[,alignment][,gaps][,pinned][,group,group_offset][,offset]

Steps are half-open, `[lower, upper)`. In a file with a column `end` instead of `upper`, this column
and the gaps name the last step itself. Sizes, alignments and offsets are in bytes; the alignment is
1 if not given. A column `hint` is skipped. `buffer` and `buffer_id` are other names of `id`, and
`start` and `begin` of `lower`, as in minimalloc.
"""

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from tightship._core import (
    Table,
    TableRefusal,
    first_repeated_word,
    read_table_header,
    read_table_rows,
    write_table_rows,
)
from tightship.atomic_file import write_bytes
from tightship.errors import FormatError, PlanError
from tightship.planner.constraints import Constraints
from tightship.planner.format.csv_constraints import INTEGER_COLUMNS, columns_of, constraints_in
from tightship.planner.names import Names, names_of
from tightship.planner.problem import Int64Array, Problem

REQUIRED = ("id", "lower", "size")
STOPS = ("upper", "end")
OPTIONAL = ("alignment", "gaps", "hint", *INTEGER_COLUMNS, "offset")

OTHER_NAMES = {"buffer": "id", "buffer_id": "id", "start": "lower", "begin": "lower"}

INT64_MAX = 2**63 - 1
KINDS = {"id": 2, "gaps": 2, "hint": 3} | dict.fromkeys(INTEGER_COLUMNS, 1)


def read_csv(
    path: Path, *, capacity_bytes: str | int | None = None
) -> tuple[Problem, Int64Array | None]:
    """Read buffers, and their offsets if the file has a column of them.

    Columns may come in any order, lines may end in CRLF, and empty lines are skipped. Offsets are
    returned without a check; `verify_offsets` checks them.

    Args:
        path: The file.
        capacity_bytes: Capacity of the problem, which the file does not hold, also given as text
            (`512KiB`); None sets no limit.

    Returns:
        The problem, and offsets in bytes of shape (n,) or None.

    Raises:
        FormatError: A column is missing, unknown or occurs twice, a line has too few or too many
            fields, a field is not a number or is out of range, or an `id` occurs twice. The message
            names line and column.
        OSError: The file cannot be read.
    """
    content = path.read_bytes().removeprefix(b"\xef\xbb\xbf")
    if not content.isascii():
        _check_encoding(path, content)
    first = read_table_header(content)
    header = [field.decode().strip() for field in first.fields]
    _refuse(path, header, first.refusal)
    names = [OTHER_NAMES.get(name, name) for name in header]
    _check_header(path, names)
    kinds = [KINDS.get(name, 0) for name in names]
    table = read_table_rows(content, first, kinds)
    _refuse(path, header, table.refusal)
    del content
    columns = dict(zip(names, table.take_columns(), strict=True))
    rows = _Rows(path, columns, table, dict(zip(names, header, strict=True)))
    buffer_names = rows.names()
    try:
        problem = Problem(
            rows.columns["size"],
            rows.columns["lower"],
            rows.stop_step(),
            rows.alignment(),
            buffer_names,
            capacity_bytes,
            rows.constraints(),
        )
    except PlanError as error:
        raise FormatError(f"`{path}`: {error}") from error
    return problem, rows.columns.get("offset")


def write_csv(path: Path, problem: Problem, offset_bytes: Int64Array | None = None) -> None:
    """Write buffers, and their offsets if given, so that `read_csv` returns the same.

    Buffers without a name get their index as `id`. The column `alignment` is written if any
    alignment is not 1. The capacity is not written.

    Args:
        path: The file.
        problem: n buffers.
        offset_bytes: An offset for each buffer, shape (n,); None writes no column of offsets.

    Raises:
        PlanError: The problem has banks or forbidden bytes, which a CSV cannot hold.
        OSError: The file cannot be written; an older file is then untouched.
    """
    columns: dict[str, tuple[bytes | None, Int64Array]] = {
        "id": (None, np.arange(problem.count, dtype=np.int64)),
        "lower": (None, problem.start_step),
        "upper": (None, problem.stop_step),
        "size": (None, problem.size_bytes),
    }
    if problem.names is not None:
        names = names_of(problem.names)
        columns["id"] = (names.text, names.stop)
    if (problem.alignment != 1).any():
        columns["alignment"] = (None, problem.alignment)
    columns |= columns_of(problem)
    if offset_bytes is not None:
        columns["offset"] = (None, offset_bytes)
    rows = write_table_rows(list(columns.values()))
    write_bytes(path, ",".join(columns).encode() + b"\n" + rows)


@dataclass(frozen=True, slots=True)
class _Rows:
    """The columns of a file, the line of each row, and the file's own name for each column."""

    path: Path
    columns: dict[str, Int64Array]
    table: Table
    spelling: dict[str, str]

    def where(self, row: int, column: str) -> str:
        """Describe the position of a field for a message."""
        name = self.spelling[column]
        return f"`{self.path}`, line {self.table.lines()[row]}, column `{name}`"

    def names(self) -> Names:
        """Return the column `id`, and raise `FormatError` if a name occurs twice."""
        text, stop = self.columns["id"]
        names = Names(text, stop)
        repeated = first_repeated_word(names.text, names.stop)
        if repeated < len(names):
            raise FormatError(
                f"{self.where(repeated, 'id')}: `{names[repeated][:40]}` occurs twice."
            )
        return names

    def constraints(self) -> Constraints | None:
        """Return the constraints that the other columns state."""
        values = {name: self.columns[name] for name in INTEGER_COLUMNS if name in self.columns}
        gaps = Names(*self.columns["gaps"]) if "gaps" in self.columns else None
        return constraints_in(values, gaps, int("end" in self.columns), self.where)

    def alignment(self) -> Int64Array:
        """Return the column `alignment`, or 1 for every buffer."""
        alignment = self.columns.get("alignment")
        if alignment is None:
            return np.ones(len(self.columns["size"]), np.int64)
        for row in np.flatnonzero((alignment < 1) | (alignment & (alignment - 1) != 0))[:1]:
            raise FormatError(
                f"{self.where(row, 'alignment')}: {alignment[row]} is not a power of two."
            )
        return alignment

    def stop_step(self) -> Int64Array:
        """Return the first step after each lifetime."""
        column = "end" if "end" in self.columns else "upper"
        start, last = self.columns["lower"], self.columns[column]
        is_last = int(column == "end")
        for row in np.flatnonzero((last < start + (1 - is_last)) | (last > INT64_MAX - is_last))[
            :1
        ]:
            raise FormatError(
                f"{self.where(row, column)}: a lifetime of [{start[row]}, "
                f"{int(last[row]) + is_last}) holds no step."
            )
        return last + is_last


def _refuse(path: Path, header: list[str], refusal: TableRefusal) -> None:
    """Raise `FormatError` for the first line that the core refused, if there is one."""
    text = refusal.text.decode(errors="replace")
    column = header[refusal.column] if refusal.column < len(header) else str(refusal.column + 1)
    where = f"`{path}`, line {refusal.line}"
    match refusal.fault:
        case 1:
            raise FormatError(f"{where} has {text} fields; the header names {len(header)} columns.")
        case 2:
            raise FormatError(
                f"{where}, column `{column}`: {text[:40]!r} is not an integer in digits."
            )
        case 3:
            raise FormatError(
                f"{where}, column `{column}`: {text.strip()[:40]} is outside [0, {INT64_MAX}]."
            )
        case 4:
            raise FormatError(
                f"{where}, column `{column}`: a quoted field must end in a quote before the next "
                "comma or line."
            )
        case 5:
            raise FormatError(f"{where}, column `{column}`: the field is larger than 131072 bytes.")


def _check_encoding(path: Path, content: bytes) -> None:
    try:
        content.decode()
    except UnicodeDecodeError as error:
        raise FormatError(f"`{path}` is not a CSV file in UTF-8: {error}.") from error


def _check_header(path: Path, header: list[str]) -> None:
    if not header:
        raise FormatError(f"`{path}` is empty; its first line must name the columns.")
    known = (*REQUIRED, *STOPS, *OPTIONAL)
    for position, name in enumerate(header):
        if name not in known:
            raise FormatError(
                f"`{path}`, line 1: column `{name}` is unknown; the columns are "
                f"{', '.join(f'`{column}`' for column in known)}."
            )
        if name in header[:position]:
            raise FormatError(f"`{path}`, line 1: column `{name}` occurs twice.")
    for name in REQUIRED:
        if name not in header:
            raise FormatError(f"`{path}`, line 1: column `{name}` is missing.")
    if ("group" in header) != ("group_offset" in header):
        raise FormatError(f"`{path}`, line 1: `group` and `group_offset` must come together.")
    if sum(name in header for name in STOPS) != 1:
        raise FormatError(
            f"`{path}`, line 1: exactly one of the columns `upper` (the step after the last) and "
            "`end` (the last step) is needed."
        )
