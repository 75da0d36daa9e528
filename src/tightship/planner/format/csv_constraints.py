"""Reads and writes constraints in a CSV: columns `gaps`, `pinned`, `group` and `group_offset`.

Gaps are `start-stop` with blanks between them, as minimalloc writes them, and `start-stop@a:b` for
a buffer that keeps its bytes `[a, b)`. A field is empty for a buffer without a pin or a group.
"""

import re
from collections.abc import Callable, Mapping

import numpy as np

from tightship.errors import FormatError, PlanError
from tightship.planner.constraints import BYTES_MAX, FREE, STEP_MAX, Constraints
from tightship.planner.names import Names, names_of
from tightship.planner.problem import Int64Array, Problem

INTEGER_COLUMNS = ("pinned", "group", "group_offset")
_NUMBER = "([0-9]{1,19})"
_GAP = re.compile(f"{_NUMBER}-{_NUMBER}(?:@{_NUMBER}:{_NUMBER})?", re.ASCII)

Column = tuple[bytes | None, Int64Array]


def constraints_in(
    columns: Mapping[str, Int64Array],
    gaps: Names | None,
    included: int,
    where: Callable[[int, str], str],
) -> Constraints | None:
    """Make the constraints that the columns of a file state; None if it has no such columns.

    Args:
        columns: The columns of `INTEGER_COLUMNS` that the file has, `FREE` for an empty field.
        gaps: The column `gaps`, or None if there is none.
        included: 1 if the second step of a gap is its last, as in a column `end`; otherwise 0.
        where: Makes the position of a field in a message from its row and column.

    Raises:
        FormatError: A gap cannot be read, or a buffer has a group without an offset in it.
    """
    if not columns and gaps is None:
        return None
    group, offset = columns.get("group"), columns.get("group_offset")
    if group is not None and offset is not None:
        for row in np.flatnonzero((group == FREE) != (offset == FREE))[:1]:
            raise FormatError(
                f"{where(row, 'group_offset')}: a buffer in a group needs an offset, and a buffer "
                "without a group must have none."
            )
        offset = np.maximum(offset, 0)
    rows = None if gaps is None else _gaps(gaps, included, where)
    has_windows = rows is not None and (rows[:, 3] < rows[:, 4]).any()
    return Constraints(
        columns.get("pinned"),
        None if rows is None else rows[:, :3],
        group=group,
        group_offset_bytes=offset,
        gap_window_bytes=rows[:, 3:] if rows is not None and has_windows else None,
    )


def columns_of(problem: Problem) -> dict[str, Column]:
    """Make the columns that state the constraints of a problem.

    Raises:
        PlanError: The problem has banks or forbidden bytes, which a CSV cannot hold.
    """
    constraints = problem.constraints
    if constraints is None:
        return {}
    if constraints.banks or constraints.forbidden:
        raise PlanError("A CSV holds no banks and no forbidden bytes; write a `.json` plan.")
    columns: dict[str, Column] = {}
    if constraints.gaps is not None:
        texts: list[list[str]] = [[] for _ in range(problem.count)]
        windows = constraints.gap_window_bytes
        for row, (buffer, start, stop) in enumerate(constraints.gaps.tolist()):
            bottom, top = (0, 0) if windows is None else windows[row].tolist()
            kept = f"@{bottom}:{top}" if bottom < top else ""
            texts[buffer].append(f"{start}-{stop}{kept}")
        columns["gaps"] = _words([" ".join(pairs) for pairs in texts])
    if constraints.pinned_offset_bytes is not None:
        columns["pinned"] = _optional(constraints.pinned_offset_bytes)
    if constraints.group is not None and constraints.group_offset_bytes is not None:
        columns["group"] = _optional(constraints.group)
        grouped = constraints.group != FREE
        columns["group_offset"] = _optional(np.where(grouped, constraints.group_offset_bytes, FREE))
    return columns


def _optional(values: Int64Array) -> Column:
    return _words(["" if value == FREE else str(value) for value in values.tolist()])


def _words(words: list[str]) -> Column:
    names = names_of(words)
    return names.text, names.stop


def _gaps(gaps: Names, included: int, where: Callable[[int, str], str]) -> Int64Array:
    """Return buffer, start and stop of each gap, and bytes `[bottom, top)` that are kept in it."""
    rows = []
    starts = np.concatenate([[0], gaps.stop[:-1]])
    for row in np.flatnonzero(gaps.stop > starts).tolist():
        for text in gaps[row].split():
            match = _GAP.fullmatch(text)
            if match is None:
                raise FormatError(
                    f"{where(row, 'gaps')}: {text[:40]!r} is not a gap; it must be `start-stop` or "
                    "`start-stop@a:b` in digits."
                )
            start, stop = int(match[1]), int(match[2]) + included
            if not start < stop <= STEP_MAX:
                raise FormatError(
                    f"{where(row, 'gaps')}: a gap of [{start}, {stop}) must hold a step and lie in "
                    f"[0, {STEP_MAX}]."
                )
            bottom, top = int(match[3] or 0), int(match[4] or 0)
            if not bottom <= top <= BYTES_MAX:
                raise FormatError(
                    f"{where(row, 'gaps')}: a gap that keeps bytes [{bottom}, {top}) must keep "
                    f"them within [0, {BYTES_MAX}]."
                )
            rows.append((row, start, stop, bottom, top))
    return np.array(rows, np.int64).reshape(-1, 5)
