"""Implements the memory note's walk: counts of future readers, and a pool of free blocks.

The graph is traversed in its order. The counter of a value is the number of later steps that depend
on it. An output is written over an input whose counter is 1, because only this step needs the
input. A block enters the pool when its counter reaches 0, and leaves it for a value of a similar
size. Nothing is allocated during the walk: a block ends up as large as its largest value.

A counter is 1 at the step where the value's lifetime ends, so the walk is a walk over lifetimes.
"""

from collections.abc import Iterable

import numpy as np

from tightship.planner.alias_choice import choose_in_turn
from tightship.planner.alias_group import alias_groups_of
from tightship.planner.liveness import buffers_of, problem_of
from tightship.planner.placements.shared_objects import MATCH_RANGE, shared_objects
from tightship.planner.problem import Int64Array, Problem
from tightship.planner.schedule import Schedule
from tightship.planner.schedule_plan import NO_BUFFER, Buffers
from tightship.planner.scheme.blocks import NO_BLOCK, Blocks, block_sizes

MATCH_RANGES = (1, 2, 4, 8, 16)
"""Match ranges that a search tries by default."""


def walk(schedule: Schedule, *, in_place: bool = True, match_range: int = MATCH_RANGE) -> Blocks:
    """Give every value a block, as the note's heuristic does.

    With `match_range=0` no block is recycled; with `in_place=False` as well, every value has a
    block of its own. In-place aliases are taken first, wherever they are safe between values of
    equal size. They can cost bytes that sharing alone would save.

    Args:
        schedule: Values and steps.
        in_place: Whether IN_PLACE aliases may be taken; VIEW and TIED ones always are.
        match_range: Factor within which the sizes of a block and a request match.

    Raises:
        PlanError: Values are bound to each other in a way that no plan can satisfy.

    Complexity: O(n log n) for n values.
    """
    if in_place:
        return recycle(buffers_in_place(schedule), match_range)
    return recycle(problem_of(schedule, in_place=False), match_range)


def search_match_range(
    schedule: Schedule, *, in_place: bool = True, match_ranges: Iterable[int] = MATCH_RANGES
) -> Blocks:
    """Return the smallest of several walks; of equal ones the first.

    Args:
        schedule: Values and steps.
        in_place: As for `walk`.
        match_ranges: Match ranges to try; `MATCH_RANGES` by default.

    Raises:
        PlanError: As `walk`.
    """
    walks = [walk(schedule, in_place=in_place, match_range=each) for each in match_ranges]
    return min(walks, key=lambda blocks: blocks.total_bytes)


def buffers_in_place(schedule: Schedule) -> Buffers:
    """Make a schedule's buffers with all IN_PLACE aliases that are safe and of equal sizes."""
    groups = alias_groups_of(schedule)
    return buffers_of(schedule, groups, next(choose_in_turn(schedule, groups)))


def recycle(buffers: Buffers, match_range: int) -> Blocks:
    """Walk the buffers' lifetimes with a pool of free blocks."""
    problem = buffers.problem
    block_of, sizes = _blocks(problem, match_range)

    def block(buffer: int) -> int:
        return NO_BLOCK if buffer == NO_BUFFER else int(block_of[buffer])

    return Blocks(
        tuple(sizes.tolist()),
        tuple(map(block, buffers.of_value)),
        tuple(map(block, buffers.of_scratch)),
        buffers.in_place,
    )


def recycled_bytes(problem: Problem, match_range: int) -> int:
    """Return the total bytes of the blocks of `recycle`; a range of 0 gives each buffer its own."""
    return int(_blocks(problem, match_range)[1].sum())


def _blocks(problem: Problem, match_range: int) -> tuple[Int64Array, Int64Array]:
    """Return the block of each buffer, and the size of each block."""
    offsets = shared_objects(problem, match_range)
    bases, block_of = np.unique(offsets, return_inverse=True)
    block_of = block_of.astype(np.int64)
    return block_of, block_sizes(problem, block_of, len(bases))
