"""Logs of the RAPIDS Memory Manager, which `TracingResource` writes as well, read as traces."""

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
    """Read a CSV log; what was refused, and blocks of no address, are left out.

    Raises:
        FormatError: No such columns, an unknown action, a pointer or a size that is none, a block
            that comes twice, goes without having come or with another size. The line is named.
        OSError: The file cannot be read.
    """
    live: dict[int, int] = {}
    events = []
    with path.open(encoding="utf-8", errors="replace", newline="") as file:
        rows = csv.DictReader(file)
        missing = [name for name in COLUMNS if name not in (rows.fieldnames or ())]
        if missing:
            raise FormatError(
                f"`{path}` is no log of allocations: it has no column `{missing[0]}`."
            )
        for row in rows:
            if row["Action"] == REFUSED or row["Pointer"] in NULL:
                continue
            where = f"`{path}`, line {rows.line_num}"
            event, size = _event(where, row)
            if event.is_allocation == (event.number in live):
                what = "comes twice" if event.is_allocation else "goes, but did not come"
                raise FormatError(f"{where}: block {event.number:#x} {what}.")
            if event.is_allocation:
                live[event.number] = size
            elif live.pop(event.number) != size:
                raise FormatError(f"{where}: block {event.number:#x} came with another size.")
            events.append(event)
    return Trace(tuple(events))


def _event(where: str, row: dict[str, str]) -> tuple[Event, int]:
    """The event of a row, and its size, which an event that goes does not have."""
    action = row["Action"]
    if action != COMES and action not in GOES:
        raise FormatError(f"{where}: `{action}` is no action: `allocate` or `free` is.")
    try:
        number, size = int(row["Pointer"], 16), int(row["Size"])
    except (TypeError, ValueError):
        raise FormatError(
            f"{where}: `{row['Pointer']}` and `{row['Size']}` are no pointer and no size."
        ) from None
    if not (0 <= number <= 2 * INT64_MAX + 1 and 0 <= size <= INT64_MAX):
        raise FormatError(f"{where}: a pointer or a size is out of range.")
    comes = action == COMES
    return Event(number, size if comes else 0, is_allocation=comes), size
