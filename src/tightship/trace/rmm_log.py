"""Reads logs of the RAPIDS Memory Manager, which `TracingResource` writes as well, as traces."""

import csv
from pathlib import Path

from tightship.errors import FormatError
from tightship.public_calls import public_call
from tightship.trace.events import INT64_MAX, Event, Trace

COLUMNS = ("Action", "Pointer", "Size")
COMES, GOES, REFUSED = "allocate", ("free", "deallocate"), "allocate failure"
NULL = ("(nil)", "0x0", "0")


@public_call
def read_rmm_log(path: Path) -> Trace:
    """Read a CSV log, without refused allocations and without blocks at a null pointer.

    Raises:
        FormatError: A column is missing, an action is unknown, a pointer or a size cannot be read,
            or a block is allocated twice, or deallocated without having been allocated or with
            another size. The message names the line.
        OSError: The file cannot be read.
    """
    live: dict[int, int] = {}
    events = []
    with path.open(encoding="utf-8", errors="replace", newline="") as file:
        rows = csv.DictReader(file)
        missing = [name for name in COLUMNS if name not in (rows.fieldnames or ())]
        if missing:
            raise FormatError(
                f"`{path}` is not a log of allocations: it has no column `{missing[0]}`."
            )
        for row in rows:
            if row["Action"] == REFUSED or row["Pointer"] in NULL:
                continue
            where = f"`{path}`, line {rows.line_num}"
            event, size = _event(where, row)
            if event.is_allocation == (event.number in live):
                what = (
                    "allocated twice" if event.is_allocation else "deallocated, but not allocated"
                )
                raise FormatError(f"{where}: block {event.number:#x} is {what}.")
            if event.is_allocation:
                live[event.number] = size
            elif live.pop(event.number) != size:
                raise FormatError(
                    f"{where}: block {event.number:#x} was allocated with another size."
                )
            events.append(event)
    return Trace(tuple(events))


def _event(where: str, row: dict[str, str]) -> tuple[Event, int]:
    """Return the event of a row, and the row's size, which a deallocation event does not hold."""
    action = row["Action"]
    if action != COMES and action not in GOES:
        raise FormatError(f"{where}: unknown action `{action}`; write `allocate` or `free`.")
    try:
        number, size = int(row["Pointer"], 16), int(row["Size"])
    except (TypeError, ValueError):
        raise FormatError(
            f"{where}: `{row['Pointer']}` must be a hexadecimal pointer and `{row['Size']}` a "
            "decimal size."
        ) from None
    if not (0 <= number <= 2 * INT64_MAX + 1 and 0 <= size <= INT64_MAX):
        raise FormatError(
            f"{where}: pointer {number:#x} or size {size} is out of range; a pointer has 64 bits, "
            "a size 63."
        )
    comes = action == COMES
    return Event(number, size if comes else 0, is_allocation=comes), size
