from tests.planner.planted import planted
from tests.planner.problems import problem
from tightship._core import StopFlag
from tightship.planner.bound import lower_bound
from tightship.planner.improve import improve
from tightship.planner.placements.in_one_order import greedy_by_size
from tightship.planner.verify import verify_offsets

EFFORT = 100_000_000


def start_of(made) -> tuple[int, int]:
    offsets = greedy_by_size(made)
    return int((offsets + made.size_bytes).max()), lower_bound(made)


def test_peaks_fall_and_bounds_rise_until_they_meet():
    made = problem((17, 0, 1, 16), (17, 0, 1, 16), (1, 0, 1, 1), (9, 1, 3, 16), (9, 2, 4, 1))
    peak, bound = 100, lower_bound(made)
    for step in improve(made, peak, bound, effort=EFFORT):
        assert step.bound_bytes >= bound
        bound = step.bound_bytes
        if step.offset_bytes is not None:
            verify_offsets(made, step.offset_bytes)
            reached = int((step.offset_bytes + made.size_bytes).max())
            assert reached < peak
            peak = reached
    assert peak == bound == 49


def test_a_planted_problem_goes_down_to_its_bound():
    made = planted(seed=5, cuts=40, capacity=512)
    peak, bound = start_of(made)
    assert peak > bound
    *_, last = improve(made, peak, bound, effort=EFFORT)
    assert int((last.offset_bytes + made.size_bytes).max()) == bound == 512


def test_without_effort_or_with_a_set_flag_there_are_no_steps():
    made = planted(seed=5, cuts=40, capacity=512)
    flag = StopFlag()
    flag.set()
    assert list(improve(made, *start_of(made), effort=0)) == []
    assert list(improve(made, *start_of(made), effort=EFFORT, stop=flag)) == []
