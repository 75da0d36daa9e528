from dataclasses import replace
from itertools import chain, combinations

import pytest
from hypothesis import given

from tests.planner.oracles import Replay
from tests.planner.problems import of_one_size, schedules
from tightship.errors import PlanError
from tightship.planner.bound import lower_bound
from tightship.planner.liveness import problem_of
from tightship.planner.planning import place_schedule
from tightship.planner.schedule import Alias, AliasKind, Schedule, ScheduledValue, Step
from tightship.planner.schedule_plan import NO_BUFFER


def over(output, source):
    return Alias(output, source, AliasKind.IN_PLACE)


OPTIONAL = (AliasKind.IN_PLACE, AliasKind.PART)


def offered(schedule):
    """The aliases of a schedule that may be taken or left."""
    return [a for step in schedule.steps for a in step.aliases if a.kind in OPTIONAL]


def part(output, source, offset_bytes):
    return Alias(output, source, AliasKind.PART, offset_bytes)


def peak_bytes(schedule, **choice):
    return problem_of(schedule, **choice).problem.live_bytes(len(schedule.steps)).max(initial=0)


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
    same = of_one_size(schedule, 32)
    values = tuple(replace(value, donated=False) for value in same.values)
    same = replace(same, values=values)
    aliases = offered(same)
    best = min(peak_bytes(same, without=left) for left in subsets(aliases))
    assert peak_bytes(same) == best


@given(schedules())
def test_what_is_left_out_is_not_taken(schedule):
    for alias in offered(schedule):
        left = problem_of(schedule, without={alias})
        assert alias not in (*left.in_place, *left.parts)


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


def joined(a, b, *, late=False, before=0):
    """x -> a, x -> b, c = concat(a, b), read by d; `late` reads a again after that."""
    sizes = {"a": a, "b": b, "c": a + b, "d": 8, "e": before}
    values = (
        ScheduledValue("x", 8, external=True),
        *(ScheduledValue(name, size, 8) for name, size in sizes.items()),
    )
    concat = Step("concat", "Concat", (1, 2), (3,), 0, (part(3, 1, 0), part(3, 2, a)))
    return Schedule(
        values,
        (
            Step("a", "Op", (0,), (1,), before),
            Step("b", "Op", (0,), (2,)),
            concat,
            Step("d", "Op", (3, 1) if late else (3,), (4,)),
        ),
    )


@pytest.mark.parametrize("late", [False, True])
def test_operands_of_a_concatenation_are_written_where_it_keeps_them(late):
    buffers = problem_of(joined(64, 32, late=late))
    assert buffers.parts == (part(3, 1, 0), part(3, 2, 64))
    assert buffers.of_value[1] == buffers.of_value[2] == buffers.of_value[3]
    assert dict(buffers.inside) == {2: 64}
    assert lower_bound(buffers.problem) == 104
    assert lower_bound(problem_of(joined(64, 32), in_place=False).problem) == 192
    offsets = place_schedule(joined(64, 32))
    assert offsets.value_offset(2) == offsets.value_offset(3) + 64


def test_a_concatenation_is_not_reserved_where_that_would_raise_the_peak():
    assert problem_of(joined(64, 32, before=96)).parts == (part(3, 1, 0), part(3, 2, 64))
    assert problem_of(joined(64, 32, before=97)).parts == ()


def test_a_part_at_a_place_that_is_not_aligned_for_it_is_copied():
    assert problem_of(joined(63, 32)).parts == (part(3, 1, 0),)


def test_a_prefix_grows_inside_the_largest_concatenation():
    values = tuple(ScheduledValue(n, s, 8) for n, s in zip("abcde", (8, 8, 16, 8, 24), strict=True))
    steps = (
        Step("a", "Op", (), (0,)),
        Step("b", "Op", (0,), (1,)),
        Step("c", "Concat", (0, 1), (2,), 0, (part(2, 0, 0), part(2, 1, 8))),
        Step("d", "Op", (2,), (3,)),
        Step("e", "Concat", (2, 3), (4,), 0, (part(4, 2, 0), part(4, 3, 16))),
    )
    buffers = problem_of(Schedule(values, steps, (4,)))
    assert buffers.problem.total_bytes == 24
    assert dict(buffers.inside) == {1: 8, 3: 16}


@pytest.mark.parametrize("parts", [(part(2, 0, 0), part(2, 1, 7)), (part(2, 0, 9),)])
def test_parts_lie_inside_and_apart(parts):
    values = tuple(ScheduledValue(*each) for each in (("a", 8), ("b", 8), ("c", 16)))
    steps = (Step("a", "Op", (), (0, 1)), Step("c", "Concat", (0, 1), (2,), 0, parts))
    with pytest.raises(PlanError, match=r"Step `c` has `[ab]` as bytes"):
        Schedule(values, steps)


@pytest.mark.parametrize("source", [1, 3])
def test_the_trap_a_part_read_later_is_not_written_over_with_the_whole_nor_alone(source):
    schedule = joined(64, 64)
    values = (*schedule.values, ScheduledValue("f", 64, 8), ScheduledValue("g", 8, 8))
    size = values[source].size_bytes
    values = tuple(replace(v, size_bytes=size) if v.name == "f" else v for v in values)
    relu = Step("relu", "Relu", (source,), (6,), 0, (over(6, source),))
    late = Step("late", "Op", (1, 6) if source == 3 else (3, 6), (7,))
    changed = Schedule(values, (*schedule.steps[:3], relu, late))
    buffers = problem_of(changed)
    assert not (buffers.in_place and part(3, 1, 0) in buffers.parts)
    Replay(changed, buffers, place_schedule(changed).plan.offset_bytes).run()


def whole(schedule):
    """The aliases taken, once every value was found whole at its place."""
    planned = place_schedule(schedule)
    Replay(schedule, planned.buffers, planned.plan.offset_bytes).run()
    return planned.buffers


def test_nothing_is_written_over_a_part_in_the_middle_of_a_dead_whole():
    sizes = (("x", 8), ("a", 8), ("b", 8), ("c", 16), ("d", 8), ("f", 16))
    values = tuple(ScheduledValue(name, size, 8, name == "x") for name, size in sizes)
    steps = (
        Step("a", "Op", (0,), (1,)),
        Step("b", "Op", (0,), (2,)),
        Step("c", "Concat", (1, 2), (3,), 64, (part(3, 1, 0), part(3, 2, 8))),
        Step("d", "Op", (3,), (4,)),
        Step("f", "Op", (2,), (5,), 0, (over(5, 2),)),
    )
    buffers = whole(Schedule(values, steps))
    assert buffers.parts == (part(3, 1, 0), part(3, 2, 8))
    assert buffers.in_place == ()


def test_what_is_larger_than_a_part_does_not_lie_over_its_neighbours():
    sizes = (("x", 8), ("a", 8), ("e", 16), ("b", 8), ("c", 16))
    values = tuple(ScheduledValue(name, size, 8, name == "x") for name, size in sizes)
    steps = (
        Step("a", "Op", (0,), (1,)),
        Step("e", "Op", (0,), (2,)),
        Step("b", "Op", (2,), (3,), 0, (over(3, 2),)),
        Step("c", "Concat", (3, 1), (4,), 8, (part(4, 3, 0), part(4, 1, 8))),
    )
    buffers = whole(Schedule(values, steps, (4,)))
    assert buffers.parts == (part(4, 3, 0), part(4, 1, 8))
    assert buffers.in_place == ()


def test_parts_of_a_part_lie_inside_it_whichever_is_taken_first():
    # The second concatenation has the largest load, and is looked at before the first.
    sizes = (("x", 8), ("a", 8), ("b", 8), ("c", 16), ("e", 24))
    values = tuple(ScheduledValue(name, size, 8, name == "x") for name, size in sizes)
    steps = (
        Step("a", "Op", (0,), (1,)),
        Step("c", "Concat", (1, 0), (3,), 0, (part(3, 1, 0),)),
        Step("b", "Op", (0,), (2,)),
        Step("e", "Concat", (2, 3), (4,), 64, (part(4, 2, 0), part(4, 3, 8))),
    )
    buffers = whole(Schedule(values, steps, (4,)))
    assert part(4, 3, 8) in buffers.parts
