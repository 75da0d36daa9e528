"""Reads and writes constraints in a plan file, whose fields are present only if they are needed.

At the top `"banks": [{"name": ..., "capacity_bytes": ... or null, "cost_per_byte": ...}, ...]` and
`"forbidden": [{"start_byte": ..., "stop_byte": ..., "start_step": ..., "stop_step": ...,
"bank": ...}, ...]`; in a buffer `pinned_offset_bytes`, `gaps` (pairs of start and stop step),
`gap_windows` (pairs of the first byte kept in each and the first one after it),
`group` with `group_offset_bytes`, `allowed_banks` (indices), and `bank`, where the plan puts it.
"""

from dataclasses import asdict

import numpy as np

from tightship.planner.constraints import FREE, Bank, Constraints, ForbiddenRange
from tightship.planner.format.json_fields import Fields
from tightship.planner.problem import Int64Array

HEAD_KEYS = ("banks", "forbidden")
BUFFER_KEYS = (
    "pinned_offset_bytes",
    "gaps",
    "gap_windows",
    "group",
    "group_offset_bytes",
    "allowed_banks",
    "bank",
)


def head_fields(constraints: Constraints) -> dict[str, object]:
    """Make the fields of banks and forbidden bytes."""
    head: dict[str, object] = {}
    if constraints.banks:
        head["banks"] = [asdict(bank) for bank in constraints.banks]
    if constraints.forbidden:
        head["forbidden"] = [asdict(place) for place in constraints.forbidden]
    return head


def buffer_fields(
    constraints: Constraints, bank: Int64Array | None, count: int
) -> list[dict[str, object]]:
    """Make the fields of the constraints on each of n buffers."""
    rows: list[dict[str, object]] = [{} for _ in range(count)]
    for name in ("pinned_offset_bytes", "group"):
        values = getattr(constraints, name)
        for index in () if values is None else np.flatnonzero(values != FREE).tolist():
            rows[index][name] = int(values[index])
            if name == "group":
                assert constraints.group_offset_bytes is not None
                rows[index]["group_offset_bytes"] = int(constraints.group_offset_bytes[index])
    for index, gaps in _by_buffer(constraints.gaps, constraints.gaps).items():
        rows[index]["gaps"] = [gap[1:] for gap in gaps]
    for index, windows in _by_buffer(constraints.gaps, constraints.gap_window_bytes).items():
        if any(bottom < top for bottom, top in windows):
            rows[index]["gap_windows"] = windows
    if constraints.allowed_banks is not None:
        for index in np.flatnonzero(~constraints.allowed_banks.all(axis=1)).tolist():
            allowed = np.flatnonzero(constraints.allowed_banks[index])
            rows[index]["allowed_banks"] = allowed.tolist()
    for index in range(count if bank is not None else 0):
        assert bank is not None
        rows[index]["bank"] = int(bank[index])
    return rows


def _by_buffer(gaps: Int64Array | None, values: Int64Array | None) -> dict[int, list[list[int]]]:
    """Group rows of `values`, one for each gap, by the buffer that has the gap."""
    rows: dict[int, list[list[int]]] = {}
    if gaps is not None and values is not None:
        for index, row in zip(gaps[:, 0].tolist(), values.tolist(), strict=True):
            rows.setdefault(index, []).append(row)
    return rows


def read_constraints(head: Fields, buffers: list[Fields]) -> Constraints | None:
    """Read the constraints of a plan file; None if it has none.

    Raises:
        FormatError: A field holds a value of another type or range; the message names the field.
        PlanError: The constraints contradict themselves.
    """
    said = {key for buffer in buffers for key in BUFFER_KEYS if key in buffer.raw}
    if not said and not any(key in head.raw for key in HEAD_KEYS):
        return None
    banks = tuple(_bank(fields) for fields in head.objects("banks", optional=True))
    ranges = tuple(_forbidden(fields) for fields in head.objects("forbidden", optional=True))
    return Constraints(
        _column(buffers, "pinned_offset_bytes") if "pinned_offset_bytes" in said else None,
        _gaps(buffers) if "gaps" in said else None,
        ranges,
        banks,
        _allowed(buffers, len(banks)) if "allowed_banks" in said else None,
        _column(buffers, "group") if "group" in said else None,
        _group_offsets(buffers) if "group" in said else None,
        _gap_windows(buffers) if "gap_windows" in said else None,
    )


def read_bank_of(buffers: list[Fields], constraints: Constraints | None) -> Int64Array | None:
    """Read the bank of each buffer; None if the problem has no banks."""
    if constraints is None or not constraints.banks:
        return None
    return np.array([buffer.integer("bank") for buffer in buffers], np.int64)


def _bank(fields: Fields) -> Bank:
    fields.check_keys(("name", "capacity_bytes", "cost_per_byte"))
    capacity = None if fields.raw["capacity_bytes"] is None else fields.integer("capacity_bytes")
    return Bank(fields.text("name"), capacity, fields.integer("cost_per_byte"))


def _forbidden(fields: Fields) -> ForbiddenRange:
    keys = ("start_byte", "stop_byte", "start_step", "stop_step", "bank")
    fields.check_keys(keys)
    return ForbiddenRange(*(fields.integer(key) for key in keys))


def _column(buffers: list[Fields], key: str) -> Int64Array:
    values = [buffer.integer(key) if key in buffer.raw else FREE for buffer in buffers]
    return np.array(values, np.int64)


def _group_offsets(buffers: list[Fields]) -> Int64Array:
    offsets = [
        buffer.integer("group_offset_bytes") if "group" in buffer.raw else 0 for buffer in buffers
    ]
    return np.array(offsets, np.int64)


def _gaps(buffers: list[Fields]) -> Int64Array:
    rows = [
        (index, *pair)
        for index, buffer in enumerate(buffers)
        for pair in buffer.pairs("gaps", optional=True)
    ]
    return np.array(rows, np.int64).reshape(-1, 3)


def _gap_windows(buffers: list[Fields]) -> Int64Array:
    rows = []
    for buffer in buffers:
        gaps = buffer.pairs("gaps", optional=True)
        windows = buffer.pairs("gap_windows", optional=True) or [[0, 0]] * len(gaps)
        if len(windows) != len(gaps):
            buffer.refuse("gap_windows", f"a pair for each of {len(gaps)} gaps")
        rows += windows
    return np.array(rows, np.int64).reshape(-1, 2)


def _allowed(
    buffers: list[Fields], bank_count: int
) -> np.ndarray[tuple[int, int], np.dtype[np.bool_]]:
    allowed = np.ones((len(buffers), max(1, bank_count)), np.bool_)
    for index, buffer in enumerate(buffers):
        if "allowed_banks" in buffer.raw:
            banks = buffer.integers("allowed_banks")
            for bank in banks:
                if bank >= bank_count:
                    buffer.refuse("allowed_banks", f"indices below {bank_count}")
            allowed[index] = np.isin(np.arange(max(1, bank_count)), banks)
    return allowed
