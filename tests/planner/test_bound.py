from hypothesis import given

from tests.planner.oracles import smallest_peak
from tests.planner.problems import problem, problems
from tightship.planner.bound import lower_bound


@given(problems())
def test_without_alignment_the_bound_is_the_largest_load(drawn):
    plain = problem(*((size, start, stop, 1) for size, start, stop, _ in drawn.columns().T))
    assert lower_bound(plain) == plain.live_bytes(20).max(initial=0)


@given(problems(count_max=6))
def test_no_plan_is_below_the_bound(drawn):
    assert lower_bound(drawn) <= smallest_peak(drawn)


@given(problems(count_max=6, alignments=(16,)))
def test_with_one_alignment_the_bound_holds_padding(drawn):
    loads = [
        sum(-(-size // 16) * 16 for size in live) - max(-size % 16 for size in live)
        for live in live_sizes(drawn)
    ]
    assert lower_bound(drawn) == max(loads, default=0)


def live_sizes(drawn) -> list[list[int]]:
    rows = drawn.columns().T.tolist()
    sizes = [
        [size for size, start, stop, _ in rows if size and start <= step < stop]
        for step in range(20)
    ]
    return [live for live in sizes if live]


def test_a_lone_buffer_needs_no_padding():
    assert lower_bound(problem((100, 0, 1, 64))) == 100
    assert lower_bound(problem((100, 0, 1, 64), (1, 0, 1, 64))) == 65 + 64
    assert lower_bound(problem()) == 0


def test_an_empty_buffer_does_not_loosen_the_alignment():
    assert lower_bound(problem((1, 0, 1, 64), (1, 0, 1, 64), (0, 0, 1, 1))) == 65
