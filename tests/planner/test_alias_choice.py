from itertools import chain, combinations

import pytest
from hypothesis import given

from tests.planner.problems import schedules
from tightship.errors import PlanError
from tightship.planner.bound import lower_bound
from tightship.planner.liveness import NO_BUFFER, problem_of
from tightship.planner.schedule import Alias, AliasKind, Schedule, ScheduledValue, Step


def over(output, source):
    return Alias(output, source, AliasKind.IN_PLACE)


def offered(schedule):
    """The IN_PLACE aliases of a schedule."""
    return [a for step in schedule.steps for a in step.aliases if a.kind is AliasKind.IN_PLACE]


def peak_bytes(schedule, **choice):
    return problem_of(schedule, **choice).problem.load_bytes(len(schedule.steps)).max(initial=0)


def subsets(aliases):
    return chain.from_iterable(combinations(aliases, size) for size in range(len(aliases) + 1))


def donating(size, result, *, kept=()):
    """Input `x` of some size, given up; `y` may be written over it, and `z` over `y`."""
    values = (
        ScheduledValue("x", size, external=True, donated=True),
        ScheduledValue("y", result),
        ScheduledValue("z", result),
    )
    first = Step("relu", "Relu", (0,), (1,), 0, (over(1, 0),))
    return Schedule(values, (first, Step("sqrt", "Sqrt", (1,), (2,), 0, (over(2, 1),))), kept)


@given(schedules())
def test_aliases_never_raise_the_largest_load(schedule):
    assert peak_bytes(schedule) <= peak_bytes(schedule, in_place=False)


@given(schedules())
def test_between_cells_of_one_size_taking_all_is_best(schedule):
    values = tuple(ScheduledValue(v.name, 32, 8, v.external, v.donated) for v in schedule.values)
    same = Schedule(values, schedule.steps, schedule.outputs)
    aliases = offered(same)
    best = min(peak_bytes(same, without=left) for left in subsets(aliases))
    assert peak_bytes(same) == best


@given(schedules())
def test_what_is_left_out_is_not_taken(schedule):
    for alias in offered(schedule):
        assert alias not in problem_of(schedule, without={alias}).in_place


def test_two_sizes_share_a_buffer_at_the_step_of_the_largest_load():
    # 64 + 32 live at `shrink`; written over its input, 64 suffice for all three steps.
    values = (
        ScheduledValue("x", 8, external=True),
        ScheduledValue("a", 64),
        ScheduledValue("b", 32),
        ScheduledValue("c", 16),
    )
    shrink = Step("shrink", "Op", (1,), (2,), 0, (over(2, 1),))
    steps = (Step("make", "Op", (0,), (1,)), shrink, Step("read", "Op", (2,), (3,)))
    buffers = problem_of(Schedule(values, steps))
    assert buffers.in_place == (over(2, 1),)
    assert lower_bound(buffers.problem) == 80
    assert lower_bound(problem_of(Schedule(values, steps), in_place=False).problem) == 96


def test_a_donated_input_is_written_over_and_takes_no_byte_of_the_arena():
    buffers = problem_of(donating(64, 64))
    assert buffers.in_place == (over(1, 0), over(2, 1))
    assert buffers.of_value == (NO_BUFFER,) * 3
    assert buffers.problem.count == 0


def test_a_donated_input_holds_nothing_larger_than_itself():
    buffers = problem_of(donating(63, 64))
    assert buffers.in_place == (over(2, 1),)
    assert buffers.problem.total_bytes == 64


def test_the_trap_a_donated_input_that_is_kept_is_not_written_over():
    assert problem_of(donating(64, 64, kept=(0,))).in_place == (over(2, 1),)
    one = donating(64, 64, kept=(0,))
    assert problem_of(Schedule(one.values, one.steps[:1], (0,))).in_place == ()


def test_what_lies_in_the_arena_cannot_be_donated():
    with pytest.raises(PlanError, match="Value `x` is donated, but not external"):
        Schedule((ScheduledValue("x", 8, donated=True),), ())


def test_of_two_outputs_the_larger_takes_the_bytes_at_the_largest_load():
    values = (ScheduledValue("x", 8, external=True), *(ScheduledValue(n, 2) for n in "a"))
    values += (ScheduledValue("b", 1), ScheduledValue("c", 3))
    split = Step("split", "Op", (1,), (2, 3), 0, (over(2, 1), over(3, 1)))
    assert problem_of(Schedule(values, (Step("make", "Op", (0,), (1,)), split))).in_place == (
        over(3, 1),
    )
