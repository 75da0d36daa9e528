"""Reads an allocation trace as a problem, to find the memory that a plan made in advance needs."""

from collections import Counter
from pathlib import Path

import numpy as np

from tightship.planner.problem import Problem
from tightship.trace.events import Trace, read_trace

ALIGNMENT = 1
"""Alignment of blocks in bytes: a trace states none."""


def read_trace_problem(path: Path, *, capacity_bytes: int | None = None) -> Problem:
    """Read the problem of a trace file.

    Args:
        path: The file.
        capacity_bytes: Capacity of the problem; None sets no limit.

    Raises:
        FormatError, OSError: As `read_trace`.
        PlanError: The sizes add up to more than a problem can hold.
    """
    return problem_of_trace(read_trace(path), capacity_bytes=capacity_bytes)


def problem_of_trace(trace: Trace, *, capacity_bytes: int | None = None) -> Problem:
    """Make a buffer for each block, live from its allocation to its deallocation.

    Steps are events. A block that is never deallocated lives to the end. A buffer is named by its
    block's number; `7#2` is the second block of number 7.

    Args:
        trace: The events.
        capacity_bytes: Capacity of the problem; None sets no limit.
    """
    live: dict[int, int] = {}
    seen: Counter[int] = Counter()
    names: list[str] = []
    rows: list[list[int]] = []
    for step, event in enumerate(trace.events):
        if event.is_allocation:
            seen[event.number] += 1
            again = seen[event.number]
            names.append(f"{event.number}#{again}" if again > 1 else str(event.number))
            live[event.number] = len(rows)
            rows.append([event.size_bytes, step, len(trace.events), ALIGNMENT])
        else:
            rows[live.pop(event.number)][2] = step
    size, start, stop, alignment = np.array(rows, np.int64).reshape(-1, 4).T
    return Problem(size, start, stop, alignment, tuple(names), capacity_bytes)
