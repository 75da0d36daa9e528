"""Restricts a problem to some of its buffers."""

from dataclasses import replace

import numpy as np

from tightship.planner.constraints import Constraints
from tightship.planner.problem import Int64Array, Problem


def part_of(problem: Problem, buffers: Int64Array) -> Problem:
    """Make the problem of some buffers, with the constraints on them and without names.

    Args:
        problem: n buffers.
        buffers: Indices of the buffers to keep, in increasing order.
    """
    chosen = np.asarray(buffers, np.int64)
    constraints = problem.constraints
    return replace(
        problem,
        size_bytes=problem.size_bytes[chosen],
        start_step=problem.start_step[chosen],
        stop_step=problem.stop_step[chosen],
        alignment=problem.alignment[chosen],
        names=None,
        constraints=None if constraints is None else _part(constraints, chosen),
    )


def _part(constraints: Constraints, chosen: Int64Array) -> Constraints:
    gaps, windows = constraints.gaps, constraints.gap_window_bytes
    if gaps is not None:
        kept = np.isin(gaps[:, 0], chosen)
        gaps = gaps[kept]
        # Rows of gaps name buffers by index, and indices change with the selection.
        gaps = np.column_stack([np.searchsorted(chosen, gaps[:, 0]), gaps[:, 1:]])
        windows = None if windows is None else windows[kept]
    return replace(
        constraints,
        pinned_offset_bytes=_of(constraints.pinned_offset_bytes, chosen),
        gaps=gaps,
        gap_window_bytes=windows,
        allowed_banks=(
            None if constraints.allowed_banks is None else constraints.allowed_banks[chosen]
        ),
        group=_of(constraints.group, chosen),
        group_offset_bytes=_of(constraints.group_offset_bytes, chosen),
    )


def _of(column: Int64Array | None, chosen: Int64Array) -> Int64Array | None:
    return None if column is None else column[chosen]
