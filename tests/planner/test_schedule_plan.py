from hypothesis import given, settings

from tests.planner.oracles import Replay
from tests.planner.problems import schedules
from tightship.planner.liveness import problem_of
from tightship.planner.planning import place_schedule
from tightship.planner.portfolio import place
from tightship.planner.schedule import Alias, AliasKind, Schedule, ScheduledValue, Step


@settings(max_examples=200)
@given(schedules())
def test_in_place_never_raises_the_peak_and_corrupts_nothing(schedule):
    planned = place_schedule(schedule)
    apart = place(problem_of(schedule, in_place=False).problem)
    assert planned.plan.peak_bytes <= apart.peak_bytes
    Replay(schedule, planned.buffers, planned.plan.offset_bytes).run()


def test_offsets_are_found_by_value_and_by_step():
    schedule = Schedule(
        (ScheduledValue("x", 8, external=True), ScheduledValue("a", 8), ScheduledValue("b", 8)),
        (
            Step("one", "Op", (0,), (1,), 100),
            Step("two", "Op", (1,), (2,), 0, (Alias(2, 1, AliasKind.IN_PLACE),)),
        ),
        (2,),
    )
    planned = place_schedule(schedule)
    assert planned.value_offset(0) is None
    assert planned.value_offset(1) == planned.value_offset(2)
    assert {planned.value_offset(1), planned.scratch_offset(0)} in ({0, 64}, {0, 128})
    assert planned.scratch_offset(1) is None
