"""An allocation trace as a problem: what would have sufficed, had it been known in advance."""

from collections import Counter
from pathlib import Path

import numpy as np

from tightship.planner.problem import Problem
from tightship.trace.events import Trace, read_trace

ALIGNMENT = 1
"""Of blocks in a trace, which states none."""


def read_trace_problem(path: Path, *, capacity_bytes: int | None = None) -> Problem:
    """The problem of a trace file.

    Raises:
        FormatError, OSError: As `read_trace`.
        PlanError: The sizes add up to more than a problem can hold.
    """
    return problem_of_trace(read_trace(path), capacity_bytes=capacity_bytes)


def problem_of_trace(trace: Trace, *, capacity_bytes: int | None = None) -> Problem:
    """A buffer for each block, live from the event that allocates it to the one that gives it back.

    Steps are events. A block that never goes lives to the end. A buffer is called by its block's
    number; `7#2` is the second block of number 7.
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
