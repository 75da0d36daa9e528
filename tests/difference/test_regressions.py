"""Models made worse in one known way: the comparison names that way as the cause."""

import pytest

import tightship
from tests.difference.regressions import REGRESSIONS
from tests.processor import needs_avx512
from tightship.difference import compare_plans

NAMES = [
    pytest.param(name, marks=needs_avx512 if name == "weight_in_two_layouts" else ())
    for name in REGRESSIONS
]


def planned(model, options):
    """Plan without Winograd's algorithm, which is chosen or not by processor and free scratch."""
    without = (*options.get("without", ()), "winograd")
    return tightship.plan(model, **{**options, "without": without})


@pytest.mark.parametrize("name", NAMES)
def test_the_cause_of_a_regression_is_named(name):
    made = REGRESSIONS[name]()
    old = planned(made.old, made.old_plan)
    new = planned(made.new, made.new_plan)
    found = compare_plans(old, new)
    assert found.change_bytes == new.peak_bytes - old.peak_bytes > 0
    assert sum(change.change_bytes for change in found.changes) == found.change_bytes
    assert found.cause is not None
    assert (found.cause.kind, found.cause.name in made.names) == (made.kind, True), found.table()
    assert made.says in found.cause.text
    assert found.cause.change_bytes > 0


@pytest.mark.parametrize("name", NAMES)
def test_the_way_back_sums_to_the_same_bytes(name):
    made = REGRESSIONS[name]()
    old = planned(made.old, made.old_plan)
    new = planned(made.new, made.new_plan)
    found = compare_plans(new, old)
    assert sum(change.change_bytes for change in found.changes) == found.change_bytes < 0
    assert found.cause is not None
    assert found.cause.change_bytes < 0


def test_there_are_twenty_regressions():
    assert len(REGRESSIONS) >= 20


def test_a_plan_does_not_differ_from_itself():
    made = REGRESSIONS["larger_batch"]()
    plan = tightship.plan(made.old)
    found = compare_plans(plan, plan)
    assert (found.changes, found.cause, found.change_bytes) == ((), None, 0)
    assert "Nothing differs at the peak." in found.table()
