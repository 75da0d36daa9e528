import pytest

from tightship.planner import Alias, AliasKind, Schedule, ScheduledValue, Step
from tightship.planner.halved import LATE, NARROWS, SUMMARY, WIDENS, halved


def chain(length, *, size_bytes=1024, late_alias=()):
    """Steps that read each other's results, and a last one that reads the first result as well."""
    values = [ScheduledValue(f"v{i}", size_bytes) for i in range(length)]
    steps = [Step("s0", "Relu", (), (0,))]
    steps += [Step(f"s{i}", "Relu", (i - 1,), (i,)) for i in range(1, length - 1)]
    last = length - 1
    steps.append(Step("last", "Add", (0, last - 1), (last,), 0, tuple(late_alias)))
    return Schedule(tuple(values), tuple(steps), (last,))


def test_a_value_waits_in_half_of_its_bytes_for_a_late_reader_alone():
    given = chain(12)
    found = halved(given, range(12))
    assert found.origin == (0, NARROWS, *range(1, 11), WIDENS, 11)
    *_, stored, widened = found.schedule.values
    assert (stored.size_bytes, widened.size_bytes) == (512, 1024)
    assert found.schedule.steps[2].reads == (0,)
    assert found.schedule.steps[-1].reads == (13, 10)


@pytest.mark.parametrize(("between", "is_stored"), [(LATE - 1, False), (LATE, True)])
def test_a_reader_is_late_from_a_number_of_steps_on(between, is_stored):
    found = halved(chain(between + 2), range(between + 2))
    assert (WIDENS in found.origin) == is_stored


def test_steps_that_may_run_later_make_no_reader_late():
    """The reader depends on two steps only; the others stand between by the order that was given"""
    values = tuple([ScheduledValue(f"v{i}", 1024) for i in range(12)])
    aside = [Step(f"s{i}", "Relu", (i - 1,), (i,)) for i in range(2, 11)]
    steps = (Step("s0", "Relu", (), (0,)), Step("s1", "Relu", (0,), (1,)), *aside,
             Step("last", "Add", (0, 1), (11,)))  # fmt: skip
    found = halved(Schedule(values, steps, (10, 11)), range(12))
    assert found.origin == tuple(range(12))


def test_a_value_that_is_no_candidate_stays():
    assert NARROWS not in halved(chain(12), range(1, 12)).origin


def test_a_sum_of_what_its_writer_reads_stays():
    values = (ScheduledValue("x", 64 * SUMMARY), *[ScheduledValue(f"v{i}", 64) for i in range(10)])
    steps = [Step("x", "Relu", (), (0,)), Step("sum", "ReduceSum", (0,), (1,))]
    steps += [Step(f"s{i}", "Relu", (i,), (i + 1,)) for i in range(1, 9)]
    steps.append(Step("last", "Add", (1, 9), (10,)))
    assert NARROWS not in halved(Schedule(values, tuple(steps), (10,)), range(11)).origin


def test_a_step_that_writes_outside_the_arena_reads_what_was_computed():
    given = chain(12)
    outside = ScheduledValue("weight", 1024, external=True)
    values = (*given.values[:-1], outside)
    assert NARROWS not in halved(Schedule(values, given.steps, (11,)), range(12)).origin


def test_a_late_reader_overwrites_what_was_widened_for_it():
    aliases = [Alias(11, 0, AliasKind.IN_PLACE)]
    found = halved(chain(12, late_alias=aliases), range(12))
    assert found.schedule.steps[-1].aliases == (Alias(11, 13, AliasKind.IN_PLACE),)


@pytest.mark.parametrize("kind", [AliasKind.VIEW, AliasKind.TIED])
def test_a_value_whose_bytes_a_late_reader_shares_stays(kind):
    found = halved(chain(12, late_alias=[Alias(11, 0, kind)]), range(12))
    assert NARROWS not in found.origin


def test_a_mask_of_a_stored_value_is_computed_again():
    values = tuple([ScheduledValue(f"v{i}", 1024 if i != 1 else 256) for i in range(12)])
    steps = [Step("s0", "Relu", (), (0,)), Step("mask", "IsNaN", (0,), (1,))]
    steps += [Step(f"s{i}", "Relu", (i - 1,), (i,)) for i in range(2, 11)]
    steps.append(Step("last", "Where", (0, 1, 10), (11,)))
    given = Schedule(values, tuple(steps), (11,))
    found = halved(given, [0, *range(2, 12)], [1])
    assert found.origin == (0, NARROWS, *range(1, 11), WIDENS, WIDENS, 1, 11)
    mask, last = found.schedule.steps[-2:]
    assert mask.name == "mask.for.last"
    assert set(last.reads) == {13, 15, 10}
    assert mask.reads == (14,)
    assert halved(given, [], [1]).origin == tuple(range(12))


def rounded(length):
    """A chain whose first result a step converts for a reader and for a late one."""
    values = [ScheduledValue(f"v{i}", 1024) for i in range(length)]
    values.append(ScheduledValue("half", 512))
    steps = [Step("s0", "Relu", (), (0,)), Step("half", "Reorder", (0,), (length,))]
    steps.append(Step("s1", "MatMul", (length,), (1,)))
    steps += [Step(f"s{i}", "Relu", (i - 1,), (i,)) for i in range(2, length - 1)]
    last = length - 1
    steps.append(Step("last", "Add", (0, length, last - 1), (last,)))
    return Schedule(tuple(values), tuple(steps), (last,))


def test_what_a_step_converts_a_value_to_is_stored_instead_of_another():
    given = rounded(12)
    found = halved(given, range(12), [12], {0: 12})
    assert NARROWS not in found.origin
    assert found.origin == (*range(12), WIDENS, 12)
    widened = found.schedule.steps[-2]
    assert widened.reads == (12,)
    assert found.schedule.steps[-1].reads == (*widened.writes, 12, 10)


def test_what_is_cheap_is_computed_again_of_what_is_cheap():
    """`v1` of the stored `v0`, and `half` of `v1`; neither is kept."""
    values = [*[ScheduledValue(f"v{i}", 1024) for i in range(12)], ScheduledValue("half", 512)]
    steps = [Step("s0", "Conv", (), (0,)), Step("gelu", "Gelu", (0,), (1,)),
             Step("half", "Reorder", (1,), (12,)), Step("s2", "MatMul", (12,), (2,))]  # fmt: skip
    steps += [Step(f"s{i}", "Relu", (i - 1,), (i,)) for i in range(3, 11)]
    steps.append(Step("last", "Gemm", (12, 0, 10), (11,)))
    found = halved(Schedule(tuple(values), tuple(steps), (11,)), range(12), [1, 12], {1: 12})
    assert found.origin == (0, NARROWS, *range(1, 12), WIDENS, 1, 2, WIDENS, 12)
    *_, widened, gelu, half, _, last = found.schedule.steps
    assert (gelu.reads, half.reads) == (widened.writes, gelu.writes)
    assert last.reads[0] == half.writes[0]
    assert found.schedule.values[half.writes[0]].size_bytes == 512
