"""Whatever the order, and whatever runs twice, every bit of losses and weights is the same."""

from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from tests.training.nets import NETS
from tests.zoo.arena import NOT_A_NUMBER
from tests.zoo.stepwise import readable, single_steps
from tightship import Adam, Sgd, train
from tightship.engine.run.executor import execute
from tightship.engine.run.limits import Limits
from tightship.engine.run.step_graph import needed

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
