from hypothesis import given

from tests.planner.oracles import Replay
from tests.planner.problems import schedules
from tests.planner.scheme.graphs import over, perceptron, sigmoids, trap, values
from tightship.planner.coarse import in_blocks
from tightship.planner.liveness import problem_of
from tightship.planner.planning import place_schedule
from tightship.planner.schedule import Alias, AliasKind, Schedule, Step


def operators(schedule):
    return [step.operator for step in in_blocks(schedule).steps]


def test_a_layer_and_its_activations_are_one_block():
    assert operators(sigmoids(2)) == ["FullyConnected+Sigmoid+Sigmoid"]
    assert operators(perceptron()) == ["FullyConnected+Activation", "FullyConnected+Softmax"]


def test_a_value_with_another_reader_stays():
    assert operators(trap()) == ["FullyConnected", "FullyConnected", "Sigmoid+Sigmoid+Add"]
    add = in_blocks(trap()).steps[2]
    assert (add.reads, add.writes) == ((2,), (5,))


def test_a_value_that_is_kept_or_shown_stays():
    steps = (Step("a", "Op", (0,), (1,)), Step("b", "Relu", (1,), (2,), 0, (over(2, 1),)))
    assert operators(Schedule(values(a=8, b=8), steps, (1, 2))) == ["Op", "Relu"]
    shown = Step("show", "Reshape", (1,), (3,), 0, (Alias(3, 1, AliasKind.VIEW),))
    schedule = Schedule(values(a=8, b=8, c=8), (steps[0], shown, steps[1]), (2, 3))
    assert "Op+Relu" not in operators(schedule)


def test_a_residual_may_be_written_over_but_not_what_the_first_step_reads():
    steps = (
        Step("a", "Op", (0,), (1,)),
        Step("b", "Op", (0,), (2,)),
        Step("conv", "Conv", (1,), (3,)),
        Step("add", "Add", (3, 2), (4,), 0, (over(4, 3), over(4, 2))),
        Step("sum", "Add", (4, 1), (5,), 0, (over(5, 4), over(5, 1))),
    )
    block = in_blocks(Schedule(values(a=8, b=8, c=8, d=8, e=8), steps, (5,))).steps[-1]
    assert block.operator == "Conv+Add+Add"
    assert block.aliases == (over(5, 2),)


@given(schedules())
def test_blocks_compute_the_same_and_take_no_more_buffers(schedule):
    coarse = in_blocks(schedule)
    planned = place_schedule(coarse)
    Replay(coarse, planned.buffers, planned.plan.offset_bytes).run()
    fine = problem_of(schedule, in_place=False).problem.total_bytes
    scratch = sum(step.scratch_bytes for step in schedule.steps)
    assert problem_of(coarse, in_place=False).problem.total_bytes <= fine
    assert sum(step.scratch_bytes for step in coarse.steps) <= scratch


@given(schedules())
def test_every_read_of_a_block_is_made_before_it(schedule):
    coarse = in_blocks(schedule)
    fine = [step.name for step in schedule.steps]
    assert len({step.name for step in coarse.steps}) == len(coarse.steps)
    assert {step.name for step in coarse.steps} <= set(fine)
    assert {v for s in coarse.steps for v in s.writes} >= set(schedule.outputs)
