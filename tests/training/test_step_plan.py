"""Plans of training steps: the bytes of a trainer, before any is allocated."""

import pytest

import tightship
from tests.training.nets import NETS
from tightship import Adam, InputError, Sgd
from tightship.difference import compare_plans

OPTIMIZERS = [Sgd(0.1), Sgd(0.1, 0.9), Adam(0.01), Adam(0.01, clip_norm=1.0)]
PLAIN_ADAM = pytest.param(Adam(0.01), marks=pytest.mark.slow)  # the last one has all that it has


@pytest.mark.parametrize("accumulate", [1, 2])
@pytest.mark.parametrize("optimizer", [*OPTIMIZERS[:2], PLAIN_ADAM, OPTIMIZERS[3]])
@pytest.mark.parametrize("name", NETS)
def test_a_plan_of_a_step_has_the_bytes_of_its_trainer(name, optimizer, accumulate) -> None:
    net = NETS[name]()
    plan = tightship.plan(net.model, loss=net.loss, optimizer=optimizer, accumulate=accumulate)
    with tightship.train(net.model, net.loss, optimizer, accumulate=accumulate) as trainer:
        memory = trainer.memory
        assert plan.peak_bytes == trainer.peak_bytes
        assert plan.arena_bytes == memory.arena_bytes
        assert plan.optimizer_bytes == memory.state_bytes
        assert plan.weights_bytes == (
            memory.weights_bytes + memory.state_bytes + memory.constants_bytes
        )
        assert tuple(plan.inputs) == trainer.input_names
        assert set(trainer.weights()) <= {each.name for each in plan.weights}
    rest = plan.weights_bytes - sum(each.size_bytes for each in plan.weights)
    assert 0 <= rest < 64 * len(plan.weights)


def test_a_plan_says_what_it_is_for() -> None:
    net = NETS["mlp"]()
    plan = tightship.plan(net.model, loss=net.loss, optimizer=Adam(0.01))
    assert plan.key["step"] == "training, Adam"
    assert list(plan.outputs) == ["y.loss"]
    assert "peak memory" in plan.table()
    assert plan._repr_html_().startswith("<svg")


def test_two_optimizers_differ_by_their_tensors() -> None:
    net = NETS["mlp"]()
    one, other = (tightship.plan(net.model, loss=net.loss, optimizer=o) for o in OPTIMIZERS[1:3])
    found = compare_plans(one, other)
    assert sum(change.change_bytes for change in found.changes) == (
        other.peak_bytes - one.peak_bytes
    )


def test_a_limit_and_recomputation_count_as_in_training() -> None:
    net = NETS["mlp"]()
    with pytest.raises(tightship.CapacityError, match="training step"):
        tightship.plan(net.model, loss=net.loss, optimizer=Sgd(0.1), max_memory="1KiB")
    given = {"recompute": 0.5, "threads": 2}
    plan = tightship.plan(net.model, loss=net.loss, optimizer=Sgd(0.1), **given)
    with tightship.train(net.model, net.loss, Sgd(0.1), **given) as trainer:
        assert plan.peak_bytes == trainer.peak_bytes
    assert plan.key["threads"] == "2"


@pytest.mark.parametrize(
    "given",
    [{"loss": "x"}, {"max_memory": "1GiB"}, {"recompute": 0.1}, {"example_labels": 3},
     {"classes_axis": 1}, {"accumulate": 2}],
)  # fmt: skip
def test_what_is_for_a_step_needs_an_optimizer(given) -> None:
    with pytest.raises(InputError, match=f"`{next(iter(given))}` is for a plan of a training step"):
        tightship.plan(NETS["mlp"]().model, **given)


@pytest.mark.parametrize("given", [{"activations": "int8"}, {"tune": "tuned.json"}])
def test_what_a_step_does_not_use_is_refused(given) -> None:
    net = NETS["mlp"]()
    with pytest.raises(InputError, match=f"`{next(iter(given))}` has no effect on a training step"):
        tightship.plan(net.model, loss=net.loss, optimizer=Sgd(0.1), **given)
