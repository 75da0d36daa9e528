"""Defines items: buffers, or rigid groups of buffers, that are placed as one, as rectangles."""

from dataclasses import dataclass

import numpy as np

from tightship.planner.constraints import FREE, Constraints
from tightship.planner.problem import Int64Array, Problem


@dataclass(frozen=True, slots=True, eq=False)
class Items:
    """m items over n buffers.

    Attributes:
        of_buffer: The item of each buffer; shape (n,).
        offset_bytes: Distance of each buffer above the base of its item, which is the item's lowest
            byte; shape (n,).
        rectangles: Rows of item, start and stop step, and bottom and top in bytes above the base,
            in increasing order of items; shape (r, 5). Rectangles of one item are disjoint.
        columns: Rows of alignment, remainder of the base modulo the alignment, pinned base or
            `FREE`, allowed banks as bits, distance of the item's end above its base in bytes, and
            bytes that a bank charges for; shape (6, m).
    """

    of_buffer: Int64Array
    offset_bytes: Int64Array
    rectangles: Int64Array
    columns: Int64Array

    @property
    def count(self) -> int:
        """Number of items."""
        return int(self.columns.shape[1])

    def envelopes(self) -> Problem:
        """Return one buffer for each item, as large and as long-lived as the whole item."""
        item, start, stop, _, top = self.rectangles.T
        size = np.zeros(self.count, np.int64)
        first = np.full(self.count, np.iinfo(np.int64).max)
        last = np.ones(self.count, np.int64)
        np.maximum.at(size, item, top)
        np.minimum.at(first, item, start)
        np.maximum.at(last, item, stop)
        first[size == 0] = 0
        return Problem(size, first, last, np.ones(self.count, np.int64))


def items_of(problem: Problem) -> Items:
    """Make the items of a problem, with or without constraints."""
    constraints = problem.constraints or Constraints()
    group = np.full(problem.count, FREE) if constraints.group is None else constraints.group
    alone = group == FREE
    keys = np.where(alone, np.arange(problem.count) + group.max(initial=0) + 1, group)
    item = np.unique(keys, return_inverse=True)[1].astype(np.int64)
    offset = np.zeros(problem.count, np.int64)
    if constraints.group_offset_bytes is not None:
        offset[~alone] = constraints.group_offset_bytes[~alone]
        lowest = np.full(item.max(initial=-1) + 1, np.iinfo(np.int64).max)
        np.minimum.at(lowest, item, offset)
        offset -= lowest[item]
    rows = _rows(problem, constraints)
    buffer = rows[:, 0]
    bytes_of = offset[buffer, None] + rows[:, 3:]
    rectangles = np.column_stack([item[buffer], rows[:, 1:3], bytes_of])
    shared = np.bincount(item)[rectangles[:, 0]] > 1
    every = np.concatenate([rectangles[~shared], disjoint(rectangles[shared])])
    return Items(
        item,
        offset,
        every[np.argsort(every[:, 0], kind="stable")],
        _columns(problem, constraints, item, offset),
    )


def _rows(problem: Problem, constraints: Constraints) -> Int64Array:
    """Return buffer, start, stop, bottom and top of each interval in which a buffer has bytes."""
    solid = np.flatnonzero(problem.size_bytes)
    starts = np.column_stack([solid, problem.start_step[solid]])
    stops = np.column_stack([solid, problem.stop_step[solid]])
    kept = np.zeros((0, 5), np.int64)
    if constraints.gaps is not None:
        gaps = constraints.gaps[problem.size_bytes[constraints.gaps[:, 0]] > 0]
        starts = np.concatenate([starts, gaps[:, [0, 2]]])
        stops = np.concatenate([stops, gaps[:, [0, 1]]])
        starts = starts[np.lexsort((starts[:, 1], starts[:, 0]))]
        stops = stops[np.lexsort((stops[:, 1], stops[:, 0]))]
        if constraints.gap_window_bytes is not None:
            kept = np.column_stack([constraints.gaps, constraints.gap_window_bytes])
    whole = np.column_stack(
        [starts, stops[:, 1], np.zeros(len(starts), np.int64), problem.size_bytes[starts[:, 0]]]
    )
    rows = np.concatenate([whole, kept])
    rows = rows[(rows[:, 1] < rows[:, 2]) & (rows[:, 3] < rows[:, 4])]
    return rows[np.lexsort((rows[:, 1], rows[:, 0]))]


def disjoint(rectangles: Int64Array) -> Int64Array:
    """Cut the rectangles of each owner so that they do not overlap.

    Args:
        rectangles: Rows of owner, start and stop step, bottom and top; shape (r, 5).

    Returns:
        Rows of the same form that cover the same bytes and steps, in increasing order of owners.
    """
    rectangles = rectangles[np.argsort(rectangles[:, 0], kind="stable")]
    cuts = np.flatnonzero(np.diff(rectangles[:, 0])) + 1
    parts = [_union(part) for part in np.split(rectangles, cuts) if len(part)]
    return np.concatenate(parts) if parts else rectangles


def _union(rectangles: Int64Array) -> Int64Array:
    item = int(rectangles[0, 0])
    steps = np.unique(rectangles[:, 1:3]).tolist()
    open_since: dict[tuple[int, int], int] = {}
    rows: list[tuple[int, int, int, int, int]] = []
    for step in steps:
        live = (rectangles[:, 1] <= step) & (step < rectangles[:, 2])
        spans = set(_merged(rectangles[live, 3:]))
        ended = [span for span in open_since if span not in spans]
        rows += [(item, open_since.pop(span), step, *span) for span in ended]
        for span in spans:
            open_since.setdefault(span, step)
    return np.array(rows, np.int64).reshape(-1, 5)


def _merged(spans: Int64Array) -> list[tuple[int, int]]:
    """Merge spans of bytes that touch or overlap."""
    merged: list[tuple[int, int]] = []
    for bottom, top in sorted(map(tuple, spans.tolist())):
        if merged and bottom <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(top, merged[-1][1]))
        else:
            merged.append((bottom, top))
    return merged


def _columns(
    problem: Problem, constraints: Constraints, item: Int64Array, offset: Int64Array
) -> Int64Array:
    count = int(item.max(initial=-1)) + 1
    strictest = np.ones(count, np.int64)
    np.maximum.at(strictest, item, problem.alignment)
    # The member with the strictest alignment fixes the remainder; `check_constraints` has made
    # sure that the others then are aligned as well.
    remainder = np.zeros(count, np.int64)
    deciding = problem.alignment == strictest[item]
    remainder[item[deciding]] = -offset[deciding] % problem.alignment[deciding]
    base = np.full(count, FREE, np.int64)
    if constraints.pinned_offset_bytes is not None:
        pinned = constraints.pinned_offset_bytes != FREE
        base[item[pinned]] = (constraints.pinned_offset_bytes - offset)[pinned]
    banks = np.full(count, 2**constraints.bank_count - 1, np.int64)
    if constraints.allowed_banks is not None:
        bits = constraints.allowed_banks @ (1 << np.arange(constraints.bank_count, dtype=np.int64))
        np.bitwise_and.at(banks, item, bits)
    end = np.zeros(count, np.int64)
    np.maximum.at(end, item, offset + problem.size_bytes)
    charge = np.zeros(count, np.int64)
    np.add.at(charge, item, problem.size_bytes)
    return np.stack([strictest, remainder, base, banks, end, charge])
