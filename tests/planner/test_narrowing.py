import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tightship._core import StopFlag
from tightship.planner.narrowing import Tried, narrow


def asked(smallest: int, cost: int = 1, closed: int = 0):
    """Questions about a number: `smallest` is the least that is possible.

    Those about numbers less than `closed` below it stay open.
    """

    def try_at(target: int, effort: int) -> Tried[str]:
        if cost > effort or smallest - closed <= target < smallest:
            return Tried(None, None, min(cost, effort))
        if target >= smallest:
            return Tried(f"{target}", target, cost)
        return Tried(None, target + 1, cost)

    return try_at


@given(st.integers(0, 300), st.integers(0, 300))
def test_the_smallest_is_found_and_proved(below, above):
    smallest = 1000
    steps = list(narrow(asked(smallest), smallest + above, smallest - below, effort=10**6))
    found = [int(step.found) for step in steps if step.found]
    bounds = [step.bound for step in steps]
    assert found == sorted(found, reverse=True)
    assert bounds == sorted(bounds)
    if below or above:
        assert min([smallest + above, *found]) == max([smallest - below, *bounds]) == smallest


@settings(max_examples=20)
@given(st.integers(1, 50))
def test_what_stays_open_is_passed_over(closed):
    *_, last = narrow(asked(1000, closed=closed), 1300, 900, effort=3000)
    assert last.bound <= 1000 - closed
    best = [
        int(s.found) for s in narrow(asked(1000, closed=closed), 1300, 900, effort=3000) if s.found
    ]
    assert best[-1] == 1000


@pytest.mark.parametrize(("effort", "reached"), [(0, 20), (10, 5), (10, 4)])
def test_nothing_is_asked_without_effort_or_at_the_bound(effort, reached):
    assert list(narrow(asked(0), reached, 5, effort=effort)) == []


def test_a_flag_ends_the_questions():
    flag = StopFlag()
    flag.set()
    assert list(narrow(asked(7), 20, 5, effort=100, stop=flag)) == []


def test_effort_is_what_all_questions_take_together():
    spent = []

    def try_at(_: int, effort: int) -> Tried[str]:
        spent.append(effort)
        return Tried(None, None, effort)

    assert list(narrow(try_at, 1000, 10, effort=1000)) == []
    assert sum(spent) == 1000
