from hypothesis import given

from tests.planner.oracles import smallest_peak
from tests.planner.planted import planted
from tests.planner.problems import problem, problems
from tightship.planner.conflict import smallest_conflict
from tightship.planner.placements.exact import fit
from tightship.planner.problem import Problem

EFFORT = 50_000_000


def part(whole: Problem, buffers) -> Problem:
    chosen = list(buffers)
    columns = (whole.size_bytes, whole.start_step, whole.stop_step, whole.alignment)
    return Problem(*(column[chosen] for column in columns))


@given(problems(count_max=7))
def test_a_minimal_conflict_does_not_fit_and_less_of_it_does(drawn):
    smallest = smallest_peak(drawn)
    if smallest == 0:
        return
    found = fit(drawn, smallest - 1, effort=EFFORT)
    conflict = smallest_conflict(drawn, smallest - 1, found.conflict, effort=EFFORT)
    assert conflict.is_minimal
    assert smallest_peak(part(drawn, conflict.buffers)) == smallest
    for buffer in conflict.buffers:
        rest = [other for other in conflict.buffers if other != buffer]
        assert smallest_peak(part(drawn, rest)) < smallest


def test_two_buffers_too_many_are_found_among_many():
    rows = [(1, step, step + 2, 1) for step in range(40)]
    made = problem(*rows, (5, 7, 8, 1), (6, 7, 9, 1))
    found = fit(made, 10, effort=EFFORT)
    conflict = smallest_conflict(made, 10, found.conflict, effort=EFFORT)
    assert conflict.buffers == (40, 41)
    assert conflict.is_minimal


def test_without_effort_a_conflict_is_not_called_minimal():
    made = planted(seed=1, cuts=30, capacity=100)
    buffers = fit(made, 99, effort=EFFORT).conflict
    conflict = smallest_conflict(made, 99, buffers, effort=0)
    assert set(conflict.buffers) <= set(buffers.tolist())
    assert not conflict.is_minimal
