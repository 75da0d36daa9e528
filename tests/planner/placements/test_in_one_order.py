from bisect import bisect_left, insort

import numpy as np
import pytest

from tightship.planner.placements.in_one_order import best_fit
from tightship.planner.problem import Problem


def by_hand(problem):
    """Free bytes as a sorted list of holes, coalesced anew after each change."""
    offsets = np.zeros(problem.count, np.int64)
    holes: list[tuple[int, int]] = []  # offset and size
    mark = 0
    columns = zip(problem.size_bytes, problem.start_step, problem.stop_step, strict=True)
    events = []
    for index, (size, start, stop) in enumerate(columns):
        events += [(start, 1, index, size), (stop, 0, index, size)]
    for _, starts, index, size in sorted(events):
        if not starts:
            insort(holes, (int(offsets[index]), int(size)))
            holes = coalesced(holes)
            continue
        fitting = [(bytes_, offset) for offset, bytes_ in holes if bytes_ >= size]
        if not fitting:
            if holes and sum(holes[-1]) == mark:
                mark = holes.pop()[0]
            offsets[index], mark = mark, mark + size
            continue
        bytes_, offset = min(fitting)
        offsets[index] = offset
        del holes[bisect_left(holes, (offset, bytes_))]
        if bytes_ > size:
            insort(holes, (int(offset + size), int(bytes_ - size)))
    return offsets


def coalesced(holes):
    kept = []
    for offset, size in holes:
        if kept and sum(kept[-1]) == offset:
            kept[-1] = (kept[-1][0], kept[-1][1] + size)
        else:
            kept.append((offset, size))
    return kept


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("size_max", [3, 10**6])
def test_each_goes_into_the_smallest_hole_and_holes_beside_each_other_are_one(seed, size_max):
    rng = np.random.default_rng(seed)
    ends = np.sort(rng.integers(0, 500, (2, 800)), axis=0)
    size = rng.integers(1, size_max, 800)
    made = Problem(size, ends[0], ends[1] + 1, np.ones(800, np.int64))
    assert best_fit(made).tolist() == by_hand(made).tolist()


def test_a_buffer_skips_a_hole_that_its_alignment_makes_too_small():
    size = np.array([8, 20, 8, 12, 16])
    start, stop = np.array([0, 0, 0, 1, 1]), np.array([2, 1, 2, 2, 2])
    made = Problem(size, start, stop, np.array([1, 1, 1, 1, 16]))
    offsets = best_fit(made)
    assert offsets[3] == 8
    assert offsets[4] == 48
