import numpy as np
import pytest

from tightship.errors import InputTypeError, PlanError
from tightship.planner.planning import place_schedule
from tightship.planner.schedule import Alias, AliasKind, Schedule, ScheduledValue, Step

VALUES = (
    ScheduledValue("x", 8, external=True),
    ScheduledValue("a", 8),
    ScheduledValue("b", 8),
)
WRITE_A = Step("make_a", "Op", (0,), (1,))


def test_steps_in_order_are_accepted():
    schedule = Schedule(VALUES, (WRITE_A, Step("make_b", "Op", (0, 1), (2,))), (2,))
    assert [step.name for step in schedule.steps] == ["make_a", "make_b"]


@pytest.mark.parametrize(
    ("steps", "words"),
    [
        ((Step("s", "Op", (3,), (1,)),), "Step `s` reads value 3; there are 3 values."),
        ((Step("s", "Op", (0,), (-1,)),), "Step `s` writes value -1"),
        ((Step("s", "Op", (1,), (2,)),), "Step `s` reads `a`, which no earlier step writes"),
        ((Step("s", "Op", (1,), (1,)),), "Step `s` reads `a`, which no earlier step writes"),
        ((WRITE_A, Step("s", "Op", (0,), (1,))), "Step `s` writes `a` a second time"),
        ((Step("s", "Op", (0,), (1, 1)),), "Step `s` writes `a` a second time"),
        ((Step("s", "Op", (0,), (1,), -1),), "Step `s` has scratch_bytes=-1"),
    ],
)
def test_a_step_that_cannot_run_is_refused(steps, words):
    with pytest.raises(PlanError, match=words):
        Schedule(VALUES, steps)


@pytest.mark.parametrize(
    ("aliases", "words"),
    [
        ([(2, 1, AliasKind.VIEW)], "alias of output 2 to input 1"),
        ([(1, 2, AliasKind.IN_PLACE)], "alias of output 1 to input 2"),
        ([(1, 0, AliasKind.VIEW), (1, 0, AliasKind.IN_PLACE)], "ties `a` to one input"),
        ([(1, 0, AliasKind.VIEW), (1, 0, AliasKind.TIED)], "ties `a` to one input"),
    ],
)
def test_an_alias_that_cannot_be_is_refused(aliases, words):
    step = Step("s", "Op", (0,), (1,), 0, tuple(Alias(*alias) for alias in aliases))
    with pytest.raises(PlanError, match=words):
        Schedule(VALUES, (step,))


def test_an_output_that_no_step_writes_is_refused():
    with pytest.raises(PlanError, match="No step writes output `b`"):
        Schedule(VALUES, (WRITE_A,), (2,))
    with pytest.raises(PlanError, match="The schedule keeps value 7"):
        Schedule(VALUES, (WRITE_A,), (7,))


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (ScheduledValue("v", -1), "Value `v` has size_bytes=-1"),
        (ScheduledValue("v", 1, 48), "Value `v` has alignment=48"),
        (ScheduledValue("v", 1, 0), "Value `v` has alignment=0"),
    ],
)
def test_a_value_that_cannot_be_is_refused(value, words):
    with pytest.raises(PlanError, match=words):
        Schedule((value,), ())


@pytest.mark.parametrize("size", [1.5, 64.0, "64", None])
def test_a_size_that_is_no_whole_number_is_refused_where_it_is_given(size):
    with pytest.raises(InputTypeError, match=rf"Value `a` has size_bytes={size!r}, a `"):
        ScheduledValue("a", size)
    with pytest.raises(InputTypeError, match=rf"Value `a` has alignment={size!r}, a `"):
        ScheduledValue("a", 64, size)


def test_a_size_may_be_a_whole_number_of_numpy():
    values = (ScheduledValue("a", np.int64(64)),)
    schedule = Schedule(values, (Step("make", "Op", (), (0,)),))
    assert place_schedule(schedule).plan.peak_bytes == 64


def test_sizes_that_cannot_be_added_up_are_refused():
    large = tuple(ScheduledValue(name, 2**61) for name in "ab")
    writes = tuple(Step(f"s{index}", "Op", (), (index,)) for index in range(2))
    with pytest.raises(PlanError, match="add up to 4611686018427387904 bytes"):
        Schedule(large, writes)
    with pytest.raises(PlanError, match="add up to 4611686018427387904 bytes"):
        Schedule(large[:1], (Step("s", "Op", (), (0,), scratch_bytes=2**61),))
