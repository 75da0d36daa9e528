"""Budgets of a step of training: by a file's key, by the planner, for files and modules."""

import pytest

import tightship
from tests.budget.budgets import write
from tests.small_models import dense
from tightship._core import onednn_cpu_isa
from tightship.budget import IsaPlanner, Training, check_budgets
from tightship.budget.isa import MASKS
from tightship.budget.training import optimizer_of
from tightship.engine.library import open_library
from tightship.errors import FormatError, InputError

open_library()
HERE = next(isa for isa, mask in reversed(MASKS.items()) if onednn_cpu_isa() & mask == mask)
"""The widest instruction set of this machine, which other plans here are for."""
STEP = 'training = {loss = "squared_error", optimizer = "sgd", momentum = 0.9}'
MODEL = 'model = "model.onnx"\nshapes = {batch = 8}'


def needed(folder, text):
    (result,) = check_budgets(write(folder, text), isa=HERE)
    return result


def test_a_step_is_planned_as_tightship_plans_it(folder):
    result = needed(folder, f"{MODEL}\n{STEP}")
    assert result.budget.title == "model.onnx batch=8 training"
    plan = tightship.plan(
        dense()[0],
        shapes={"batch": 8},
        loss="squared_error",
        optimizer=tightship.Sgd(momentum=0.9),
    )
    assert result.needed_bytes == plan.peak_bytes
    assert result.needed_bytes > needed(folder, MODEL).needed_bytes


def test_a_velocity_and_gathered_gradients_count(folder):
    def kept(training):
        return needed(folder, f"{MODEL}\n{training}").plan.parts["weights"]

    plain = kept('training = {loss = "squared_error", optimizer = "sgd"}')
    assert plain < kept(STEP) < kept(f"{STEP[:-1]}, accumulate = 2}}")


def test_a_budget_is_of_the_precision_that_it_names(folder):
    training = 'training = {loss = "squared_error", optimizer = "adam", precision = "bfloat16"}'
    plan = tightship.plan(
        dense()[0],
        shapes={"batch": 8},
        loss="squared_error",
        optimizer=tightship.Adam(),
        precision="bfloat16",
    )
    assert needed(folder, f"{MODEL}\n{training}").needed_bytes == plan.peak_bytes


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ('"adam"', "write a table"),
        ('{optimizer = "adam"}', "write a table"),
        ('{loss = "squared_error", optimizer = "lion"}', "is 'lion'; give `adam`"),
        ('{loss = "squared_error", momentum = 0.9}', "`momentum` is for the optimizer `sgd`"),
        ('{loss = "squared_error", accumulate = "2"}', "`accumulate` is '2'"),
        ('{loss = "squared_error", precision = "half"}', "`precision` is 'half'; it must be 'fl"),
        ('{loss = "squared_error", rate = 1}', "unknown key `rate`"),
    ],
)
def test_what_is_no_step_is_refused(folder, value, message):
    with pytest.raises(FormatError, match=message):
        write(folder, f"{MODEL}\ntraining = {value}")


def test_an_unknown_loss_is_named_with_its_budget(folder):
    with pytest.raises(InputError, match="Unknown loss `no`"):
        needed(folder, f'{MODEL}\ntraining = {{loss = "no"}}')


def test_optimizers_are_given_by_name_or_themselves():
    assert optimizer_of("adam") == tightship.Adam()
    adam = tightship.Adam(0.5)
    assert optimizer_of(adam) is adam
    with pytest.raises(InputError, match="give `adam`, `sgd`"):
        optimizer_of(3)


def test_a_step_of_a_module_is_planned_without_its_weights():
    torch = pytest.importorskip("torch")

    def module():
        linear = torch.nn.Linear
        return torch.nn.Sequential(linear(64, 256), torch.nn.Tanh(), linear(256, 8))

    adam, examples = tightship.Adam(1e-3), torch.zeros(4, 64)
    training = Training("cross_entropy", adam, accumulate=2)
    with torch.device("meta"):
        empty = module()
    plan = tightship.plan(empty, examples, loss="cross_entropy", optimizer=adam, accumulate=2)
    with IsaPlanner(HERE) as planner:
        whole, hollow = (
            planner.plan(each, example_inputs=examples, training=training)
            for each in (module(), empty)
        )
    assert whole.peak_bytes == hollow.peak_bytes
    # The processor may have more than the instruction set, whose code takes memory, too.
    assert hollow.arena_bytes == plan.arena_bytes
    assert abs(hollow.peak_bytes - plan.peak_bytes) < 1 << 20
