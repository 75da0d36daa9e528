"""The choice of a plan for several workers, in a prepared file."""

import pytest

from tightship.engine.stored.concurrency import concurrency_json, concurrency_of
from tightship.engine.stored.fields import MalformedError
from tightship.planner.parallel.concurrency import Concurrency, PlanChoice

FOUND = Concurrency(
    2,
    (PlanChoice("one after another", 64, 1, 4, 1 << 50), PlanChoice("in any order", 128, 0, 2, 7)),
    0,
    ((0, 2),),
    1 << 50,
    64,
)


@pytest.mark.parametrize("bound", [64, 0, None])
def test_it_is_read_as_it_was_written(bound):
    given = Concurrency(2, FOUND.choices, 1, FOUND.edges, 9, bound)
    assert concurrency_of(concurrency_json(given), 2, 3) == given


def test_one_worker_has_none():
    assert concurrency_json(None) is None
    assert concurrency_of(None, 1, 3) is None


@pytest.mark.parametrize(("value", "workers"), [(None, 2), (concurrency_json(FOUND), 1)])
def test_it_is_there_if_and_only_if_there_are_several_workers(value, workers):
    with pytest.raises(MalformedError, match="several workers"):
        concurrency_of(value, workers, 3)


@pytest.mark.parametrize(
    ("place", "value"),
    [
        (0, []), (0, [["a", 1, 1, 1]]), (0, [[1, 1, 1, 1, 1]]), (1, 2), (1, -1), (2, [[1, 0]]),
        (2, [[0, 3]]), (2, [[0]]), (2, [[1, 1]]), (3, 0.5), (4, "none"), (4, -2),
    ],
)  # fmt: skip
def test_anything_else_is_refused(place, value):
    written = concurrency_json(FOUND)
    written[place] = value
    with pytest.raises(MalformedError):
        concurrency_of(written, 2, 3)
