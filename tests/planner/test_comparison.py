from hypothesis import given

from tests.planner.problems import schedules
from tightship.planner.comparison import compare
from tightship.planner.schedule import Alias, AliasKind, Schedule, ScheduledValue, Step


def test_the_strategies_of_a_chain_by_hand():
    # make -> relu (in place) -> pool -> head. The first step's scratch of 256 is recycled by
    # `share` as the block of relu's output, which it grows to hold.
    values = (
        ScheduledValue("x", 64, external=True),
        *(ScheduledValue(f"v{index}", size) for index, size in enumerate((640, 640, 128, 64))),
    )
    schedule = Schedule(
        values,
        (
            Step("make", "Op", (0,), (1,), 256),
            Step("relu", "Op", (1,), (2,), 0, (Alias(2, 1, AliasKind.IN_PLACE),)),
            Step("pool", "Op", (2,), (3,)),
            Step("head", "Op", (3,), (4,)),
        ),
    )
    assert compare(schedule) == {
        "none": 640 + 640 + 128 + 64 + 256,
        "in_place": 640 + 128 + 64 + 256,
        "share": 640 + 640,
        "in_place+share": 640 + 256,
        "greedy_by_size": 640 + 256,
        "best_fit": 640 + 256,
        "planned": 640 + 256,
        "lower_bound": 640 + 256,
    }


@given(schedules())
def test_what_is_planned_is_the_smallest_of_all(schedule):
    arena_bytes = compare(schedule)
    assert arena_bytes["lower_bound"] <= arena_bytes["planned"]
    for strategy in ("in_place+share", "greedy_by_size", "best_fit"):
        assert arena_bytes["planned"] <= arena_bytes[strategy]
    assert arena_bytes["planned"] <= arena_bytes["share"]
    assert arena_bytes["in_place"] <= arena_bytes["none"]
