"""Whatever the order, and whatever runs twice, every bit of losses and weights is the same."""

from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from tests.training.nets import NETS
from tests.zoo.arena import NOT_A_NUMBER
from tests.zoo.net import Net
from tests.zoo.stepwise import readable, single_steps
from tightship import Adam, Sgd, train
from tightship.engine.run.executor import execute
from tightship.engine.run.limits import Limits
from tightship.engine.run.step_graph import needed
from tightship.errors import CapacityError

PLAIN = {"without": ["reorder"]}
ORDERS = {
    "reordered": {},
    "a tenth again": {"recompute": 0.1},
    "anything again": {"recompute": 1.0},
    "nothing in place": {"without": ["in_place"]},
}


def stepped(trainer, feeds):
    """A step in which bytes that no kernel may read are NaN before every kernel."""
    program, external = trainer._ready(feeds)
    arena, executable = program.arena, program.executable
    room = arena.block.array()
    for index, segment in enumerate(single_steps(executable)):
        room[~readable(executable, index, room.size)] = NOT_A_NUMBER
        execute(replace(executable, segments=(segment,)), arena, external, {}, Limits())
    trainer.steps += 1
    return float(program.loss.reshape(()))


def trained(net, optimizer, settings, *, poisoned):
    with train(net.model, net.loss, optimizer, **settings) as trainer:
        step = stepped if poisoned else type(trainer).step
        losses = [step(trainer, net.feeds) for _ in range(3)]
        return losses, trainer.weights(), trainer.memory


@cache
def plainly_trained(name, optimizer):
    """Losses, weights and memory of a net that the other orders are held against."""
    return trained(NETS[name](), optimizer, PLAIN, poisoned=False)


@pytest.mark.parametrize("optimizer", [Sgd(0.1), Adam(0.01)])
@pytest.mark.parametrize("name", NETS)
@pytest.mark.parametrize("order", ORDERS)
def test_every_order_gives_the_same_bits(name, order, optimizer):
    net = NETS[name]()
    losses, weights, memory = plainly_trained(name, optimizer)
    for poisoned in (False, True):
        found, moved, other = trained(net, optimizer, ORDERS[order], poisoned=poisoned)
        assert found == losses
        assert moved.keys() == weights.keys()
        assert all(np.array_equal(moved[key], weights[key]) for key in weights)
        assert other.arena_bytes <= memory.arena_bytes or "in_place" in str(ORDERS[order])


@pytest.mark.parametrize("optimizer", [Sgd(0.1), Adam(0.01)])
@pytest.mark.parametrize("name", NETS)
@pytest.mark.parametrize("recompute", [0.0, 1.0])
def test_kernels_that_run_at_once_give_the_same_bits(name, recompute, optimizer):
    net = NETS[name]()
    losses, weights, _ = plainly_trained(name, optimizer)
    with train(net.model, net.loss, optimizer, recompute=recompute) as trainer:
        trainer._programs[0].arena.block.array()[:] = NOT_A_NUMBER
        assert [trainer.step(net.feeds, workers=4) for _ in range(3)] == losses
        found = trainer.weights()
    assert all(np.array_equal(found[key], weights[key]) for key in weights)


def test_an_update_waits_for_the_readers_of_its_weight():
    net = NETS["mlp"]()
    with train(net.model, net.loss, Sgd(0.1)) as trainer:
        placement = trainer._programs[0].executable.placement
        steps = placement.lowered.steps
        after = dict.fromkeys(range(len(steps)), frozenset())
        for before, index in needed(placement):
            after[index] |= {before} | after[before]
        slot = placement.lowered.inputs["w2"].slot
        (update,) = [i for i, step in enumerate(steps) if step.name == "w2.next"]
        readers = {i for i, step in enumerate(steps) if any(o.slot == slot for o in step.reads)} - {
            update
        }
        assert len(readers) > 1
        assert readers <= after[update]


def test_poison_finds_a_plan_that_is_wrong(monkeypatch):
    net = NETS["cnn"]()
    monkeypatch.setattr(
        "tests.training.test_orders.readable", lambda _, __, size: np.zeros(size, bool)
    )
    with train(net.model, net.loss, Sgd(0.1)) as trainer:
        assert np.isnan(stepped(trainer, net.feeds))


def test_steps_run_again_where_that_makes_room():
    net = NETS["cnn"]()
    with train(net.model, net.loss, Sgd(0.1)) as plain:
        memory = plain.memory
    with train(net.model, net.loss, Sgd(0.1), recompute=1.0) as tight:
        assert tight.memory.arena_bytes < memory.arena_bytes
        assert 0 < tight.memory.recomputed_share <= 1
        room = tight.memory.peak_bytes
    between = (room + memory.peak_bytes) // 2
    with train(net.model, net.loss, Sgd(0.1), recompute=1.0, max_memory=between) as enough:
        assert enough.peak_bytes <= between
        assert enough.memory.recomputed_share <= tight.memory.recomputed_share


def test_a_limit_is_met_between_nested_checkpoints_with_the_same_bits():
    net = Net()
    x = net.normal("x", 64, 64)
    for _ in range(40):
        x = net("Tanh", net("MatMul", x, net.weight(64, 64)))
    net.output(x)
    case = net.case()
    feeds = {**case.feeds, "labels": np.ones((64, 64), np.float32)}
    found = []
    with train(case.model, "squared_error", Sgd(0.1)) as plain:
        memory = plain.memory
        found.append(([plain.step(feeds) for _ in range(2)], plain.weights()))
    assert memory.recomputed_share == 0
    limit = memory.peak_bytes - memory.arena_bytes * 3 // 4
    with train(case.model, "squared_error", Sgd(0.1), max_memory=limit) as tight:
        assert tight.memory.peak_bytes <= limit
        assert 0.2 < tight.memory.recomputed_share < 0.4
        found.append(([tight.step(feeds) for _ in range(2)], tight.weights()))
    assert found[0][0] == found[1][0]
    for name, weight in found[0][1].items():
        np.testing.assert_array_equal(found[1][1][name], weight)
    with pytest.raises(CapacityError, match="No plan of a training step within"):
        train(case.model, "squared_error", Sgd(0.1), max_memory=limit, recompute=0.1)
