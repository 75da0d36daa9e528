import pytest

from tightship.errors import PlanError
from tightship.planner.alias_group import alias_groups_of
from tightship.planner.schedule import Alias, AliasKind, Schedule, ScheduledValue, Step


def schedule_of(*steps: Step, outputs=(), external=(0,)) -> Schedule:
    """Values `v0`, `v1`, ... of 8, 16, ... bytes, as many as the steps write; 0 is external."""
    count = 1 + max(value for step in steps for value in step.writes)
    values = tuple(
        ScheduledValue(f"v{index}", 8 * (index + 1), 8, external=index in external)
        for index in range(count)
    )
    return Schedule(values, steps, outputs)


def tie(output, source):
    return Alias(output, source, AliasKind.TIED)


def view(output, source):
    return Alias(output, source, AliasKind.VIEW)


def test_a_view_lengthens_the_life_of_its_base():
    groups = alias_groups_of(
        schedule_of(
            Step("make", "Op", (0,), (1,)),
            Step("show", "Op", (1,), (2,), 0, (view(2, 1),)),
            Step("idle", "Op", (0,), (3,)),
            Step("read", "Op", (2,), (4,)),
        )
    )
    assert groups[1] is groups[2]
    assert (groups[1].start_step, groups[1].stop_step) == (0, 4)
    assert groups[1].size_bytes == 24
    assert groups[3] is not groups[1]


def test_an_unread_value_lives_in_its_own_step():
    groups = alias_groups_of(
        schedule_of(Step("make", "Op", (0,), (1,)), Step("idle", "Op", (0,), (2,)))
    )
    assert (groups[1].start_step, groups[1].stop_step) == (0, 1)


def test_a_kept_value_lives_to_the_end():
    steps = (Step("make", "Op", (0,), (1,)), Step("idle", "Op", (0,), (2,)))
    assert alias_groups_of(schedule_of(*steps, outputs=(1,)))[1].stop_step == 2


def test_a_view_of_an_external_value_is_external():
    groups = alias_groups_of(schedule_of(Step("show", "Op", (0,), (1,), 0, (view(1, 0),))))
    assert groups[1].external


@pytest.mark.parametrize("bind", [view, tie])
def test_an_external_value_cannot_be_bound_into_the_arena(bind):
    steps = (Step("make", "Op", (0,), (1,)), Step("show", "Op", (1,), (2,), 0, (bind(2, 1),)))
    with pytest.raises(PlanError, match="Step `show` binds external `v2` to `v1`, which lies in"):
        alias_groups_of(schedule_of(*steps, external=(0, 2)))


@pytest.mark.parametrize(
    ("last", "outputs", "words"),
    [
        (Step("late", "Op", (1,), (4,)), (), "`v1` in the same bytes is read later"),
        (Step("late", "Op", (2,), (4,)), (), "`v2` in the same bytes is read later"),
        (Step("late", "Op", (0,), (4,)), (1,), "`v1` in the same bytes is read later"),
    ],
)
def test_bytes_that_are_read_later_cannot_be_tied(last, outputs, words):
    steps = (
        Step("make", "Op", (0,), (1,)),
        Step("show", "Op", (1,), (2,), 0, (view(2, 1),)),
        Step("add", "Op", (1,), (3,), 0, (tie(3, 1),)),
        last,
    )
    with pytest.raises(PlanError, match=f"Step `add` writes `v3` over `v1`, but {words}"):
        alias_groups_of(schedule_of(*steps, outputs=outputs))


def test_bytes_of_another_operand_cannot_be_tied():
    make = Step("make", "Op", (0,), (1,))
    show = Step("show", "Op", (1,), (2,), 0, (view(2, 1),))
    both = Step("add", "Op", (1, 2), (3,), 0, (tie(3, 1),))
    with pytest.raises(PlanError, match="`v2` in the same bytes is also its operand"):
        alias_groups_of(schedule_of(make, show, both))
    twice = Step("split", "Op", (1,), (2, 3), 0, (tie(2, 1), tie(3, 1)))
    with pytest.raises(PlanError, match="`v2` in the same bytes is also its operand"):
        alias_groups_of(schedule_of(make, twice))


def test_tied_values_follow_each_other_in_one_cell():
    groups = alias_groups_of(
        schedule_of(
            Step("make", "Op", (0,), (1,)),
            Step("add", "Op", (1,), (2,), 0, (tie(2, 1),)),
            Step("more", "Op", (2,), (3,), 0, (tie(3, 2),)),
            Step("read", "Op", (3,), (4,)),
        )
    )
    assert groups[1] is groups[2] is groups[3]
    assert (groups[1].start_step, groups[1].stop_step, groups[1].size_bytes) == (0, 4, 32)


def test_an_alias_group_is_aligned_for_all_its_values():
    values = (ScheduledValue("x", 8, external=True), ScheduledValue("a", 8, 8))
    steps = (Step("make", "Op", (0,), (1,)), Step("show", "Op", (1,), (2,), 0, (view(2, 1),)))
    groups = alias_groups_of(Schedule((*values, ScheduledValue("b", 8, 128)), steps))
    assert groups[1].alignment == 128
