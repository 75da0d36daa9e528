"""The search for cuts against trying all of them."""

from itertools import combinations, pairwise, permutations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tightship.cluster.best_cuts import best_cuts


def all_cuts(stage_bytes, crossing, budgets):
    """Crossing bytes and largest stage of every way to cut within the budgets."""
    last = len(crossing) - 1
    for count in range(1, len(budgets) + 1):
        for inner in combinations(range(1, last), count - 1):
            ends = (0, *inner, last)
            sizes = [int(stage_bytes[pair]) for pair in pairwise(ends)]
            fits = any(
                all(size <= budget for size, budget in zip(sizes, chosen, strict=True))
                for chosen in permutations(budgets, count)
            )
            if fits:
                yield sum(int(crossing[cut]) for cut in inner), max(sizes)


@given(st.data())
def test_no_other_cuts_are_better(data):
    count = data.draw(st.integers(2, 7))
    sizes = st.integers(1, 12)
    stage_bytes = np.array(data.draw(st.lists(sizes, min_size=count**2, max_size=count**2)))
    stage_bytes = stage_bytes.reshape(count, count)
    inner = data.draw(st.lists(st.integers(0, 3), min_size=count - 2, max_size=count - 2))
    crossing = np.array([0, *inner, 0])
    budgets = data.draw(st.lists(sizes, min_size=1, max_size=4))
    found = best_cuts(stage_bytes, crossing, budgets)
    expected = min(all_cuts(stage_bytes, crossing, budgets), default=None)
    if found is None or expected is None:
        assert found is expected
        return
    assert (found.crossing_bytes, found.largest_bytes) == expected
    assert len(set(found.budgets)) == len(found.stages)
    assert [first for first, _ in found.stages] == [0, *(stop for _, stop in found.stages[:-1])]
    assert found.stages[-1][1] == count - 1
    for stage, budget in zip(found.stages, found.budgets, strict=True):
        assert stage_bytes[stage] <= budgets[budget]
    assert sum(int(crossing[stop]) for _, stop in found.stages[:-1]) == found.crossing_bytes


def test_a_node_that_holds_all_is_not_helped():
    stage_bytes = np.array([[0, 5, 9], [0, 0, 5], [0, 0, 0]])
    found = best_cuts(stage_bytes, np.array([0, 2, 0]), [5, 9])
    assert (found.stages, found.budgets) == (((0, 2),), (1,))


def test_too_many_budgets_are_a_defect_of_the_caller():
    with pytest.raises(AssertionError):
        best_cuts(np.zeros((2, 2), np.int64), np.zeros(2, np.int64), [1] * 11)
