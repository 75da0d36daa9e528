import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.planner.problems import schedules
from tests.planner.scheme.graphs import (
    different_shapes,
    over,
    perceptron,
    replay,
    sigmoids,
    trap,
    values,
)
from tightship.planner.liveness import problem_of
from tightship.planner.schedule import Alias, AliasKind, Schedule, Step
from tightship.planner.scheme.reference_count import search_match_range, walk

RANGES = (0, 1, 2, 16)


@pytest.mark.parametrize("count", [1, 3, 50])
def test_a_chain_of_sigmoids_of_any_length_is_one_buffer(count):
    blocks = walk(sigmoids(count), match_range=0)
    assert blocks.size_bytes == (640,)
    assert len(blocks.in_place) == count


def test_the_trap_c_is_not_written_over_b_which_f_still_needs():
    blocks = walk(trap(), match_range=0)
    a, b, c, e, f = blocks.of_value[1:]
    assert c not in (a, b)
    assert e == c
    assert f == b
    assert blocks.in_place == (over(4, 3), over(5, 2))
    replay(trap(), blocks)


@pytest.mark.parametrize(("b", "e"), [(640, 320), (320, 640), (640, 640)])
def test_b_and_e_of_different_shapes_share_the_larger_of_both(b, e):
    blocks = walk(different_shapes(b, e), in_place=False)
    shared = blocks.of_value[2]
    assert shared == blocks.of_value[4]
    assert blocks.size_bytes[shared] == max(b, e)


def test_the_perceptron_takes_its_activations_in_place():
    blocks = walk(perceptron())
    assert blocks.in_place == (over(2, 1), over(4, 3))
    assert blocks.size_bytes == (512, 64)  # 40 bytes, to a multiple of the alignment


def test_in_place_can_cost_more_than_sharing_alone():
    # b comes into a's block of 640. Written over b, c holds it when d needs 640 bytes; in a block
    # of its own, c leaves it to d.
    steps = (
        Step("a", "Op", (0,), (1,)),
        Step("b", "Op", (0,), (2,)),
        Step("c", "Op", (0, 2), (3,), 0, (over(3, 2),)),
        Step("d", "Op", (3,), (4,)),
    )
    schedule = Schedule(values(a=640, b=64, c=64, d=640), steps)
    assert walk(schedule).size_bytes == (640, 640)
    assert walk(schedule, in_place=False).size_bytes == (640, 64)


def view(output, source):
    return Alias(output, source, AliasKind.VIEW)


@pytest.mark.parametrize(
    ("step", "taken"),
    [
        (Step("split", "Op", (1,), (2, 3), 0, (over(2, 1), over(3, 1))), (over(2, 1),)),
        (Step("split", "Op", (1,), (2, 3), 0, (view(2, 1), over(3, 1))), ()),
    ],
)
def test_one_input_is_taken_by_one_output(step, taken):
    schedule = Schedule(values(a=8, b=8, c=8), (Step("a", "Op", (0,), (1,)), step))
    assert walk(schedule).in_place == taken


def test_the_trap_a_view_in_another_operand_is_not_written_over():
    steps = (
        Step("a", "Op", (0,), (1,)),
        Step("show", "Op", (1,), (2,), 0, (view(2, 1),)),
        Step("product", "Op", (1, 2), (3,), 0, (over(3, 1),)),
    )
    assert walk(Schedule(values(a=8, b=8, c=8), steps)).in_place == ()


@given(schedules(), st.sampled_from(RANGES), st.booleans())
def test_every_value_is_whole_when_it_is_read(schedule, match_range, in_place):
    replay(schedule, walk(schedule, match_range=match_range, in_place=in_place))


@given(schedules(), st.sampled_from(RANGES))
def test_blocks_are_never_below_the_bound_nor_above_the_sum(schedule, match_range):
    total = walk(schedule, match_range=match_range, in_place=False).total_bytes
    apart = problem_of(schedule, in_place=False).problem
    padded = apart.total_bytes + int((-apart.size_bytes % apart.alignment).sum())
    assert apart.live_bytes(len(schedule.steps)).max(initial=0) <= total <= padded
    if match_range == 0:
        assert total == padded


@given(schedules(), st.booleans())
def test_a_search_is_no_worse_than_any_of_its_ranges(schedule, in_place):
    found = search_match_range(schedule, in_place=in_place, match_ranges=(2, 16))
    each = [walk(schedule, in_place=in_place, match_range=r).total_bytes for r in (2, 16)]
    assert found.total_bytes == min(each)
