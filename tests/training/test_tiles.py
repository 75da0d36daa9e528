"""Large gradients are made and consumed by rows of their weight: in less memory, the same step."""

import numpy as np
import pytest

from tests.processor import HAS_AVX512
from tests.training.nets import NETS
from tightship import Adam, Sgd, train

WHOLE = {"without": ["tiles"]}
OPTIMIZERS = {
    "sgd": Sgd(0.05),
    "nesterov": Sgd(0.02, 0.9, weight_decay=0.1, nesterov=True),
    "adam": Adam(0.01),
    "adamw": Adam(0.01, weight_decay=0.3, decays_vectors=False),
}


def tiles_of(trainer):
    """Updates of some rows, by the program that they are in."""
    return [
        sum(".tile" in name and "Update" in operator for name, operator in steps)
        for steps in (
            [(step.name, step.operator) for step in program.executable.placement.lowered.steps]
            for program in trainer._programs
        )
    ]


def trained(name, optimizer, **settings):
    net = NETS[name]()
    with train(net.model, net.loss, optimizer, **settings) as trainer:
        losses = [trainer.step(net.feeds) for _ in range(6)]
        tensors = {key: array.copy() for key, array in trainer._tensors().items()}
        return losses, tensors, trainer.memory, tiles_of(trainer)


@pytest.mark.parametrize("how", OPTIMIZERS)
@pytest.mark.parametrize("accumulate", [1, 3])
@pytest.mark.parametrize("name", ["lookup", "tied"])
def test_a_step_in_tiles_is_the_whole_one_in_less_memory(name, accumulate, how):
    optimizer = OPTIMIZERS[how]
    losses, tensors, memory, none = trained(name, optimizer, accumulate=accumulate, **WHOLE)
    found, others, less, tiles = trained(name, optimizer, accumulate=accumulate)
    assert not any(none)
    assert all(tiles)
    np.testing.assert_allclose(found, losses, 1e-6)
    for key, array in tensors.items():
        np.testing.assert_allclose(others[key], array, 1e-5, 1e-6, err_msg=key)
    assert less.peak_bytes < memory.peak_bytes
    assert less.block_bytes - less.arena_bytes == memory.block_bytes - memory.arena_bytes
    assert less.arena_bytes < memory.arena_bytes / (3 if HAS_AVX512 else 1.7)
    assert less.given_arena_bytes == memory.given_arena_bytes


def test_a_table_in_tiles_has_the_bits_of_the_whole():
    """No product is cut: what is looked up is scattered, and rows are updated."""
    for optimizer in OPTIMIZERS.values():
        losses, tensors, _, _ = trained("lookup", optimizer, **WHOLE)
        found, others, _, tiles = trained("lookup", optimizer)
        assert any(tiles)
        assert found == losses
        assert all(np.array_equal(others[key], array) for key, array in tensors.items())


def test_gradients_whose_norm_is_taken_stay_whole():
    found = trained("lookup", Sgd(0.05, clip_norm=0.5))
    wanted = trained("lookup", Sgd(0.05, clip_norm=0.5), **WHOLE)
    assert not any(found[3])
    assert found[2] == wanted[2]


@pytest.mark.parametrize(
    "settings", [{}, {"recompute": 0.2}, pytest.param({"accumulate": 2}, marks=pytest.mark.slow)]
)
@pytest.mark.parametrize("name", NETS)
def test_tiles_never_take_more(name, settings):
    net = NETS[name]()
    with train(net.model, net.loss, Adam(), **settings) as trainer:
        found = trainer.memory
    with train(net.model, net.loss, Adam(), **settings, **WHOLE) as trainer:
        whole = trainer.memory
    assert found.peak_bytes <= whole.peak_bytes
    assert found.arena_bytes <= whole.arena_bytes


def test_a_step_fits_a_limit_that_it_meets_only_in_tiles():
    net = NETS["tied"]()
    with train(net.model, net.loss, Sgd()) as trainer:
        limit = trainer.peak_bytes
    with train(net.model, net.loss, Sgd(), max_memory=limit) as trainer:
        assert trainer.peak_bytes == limit
    with train(net.model, net.loss, Sgd(), max_memory=limit, recompute=0.1) as trainer:
        assert trainer.memory.recomputed_share == 0


def test_a_checkpoint_of_a_step_in_tiles_is_one_of_the_whole(tmp_path):
    net, path = NETS["tied"](), tmp_path / "at.safetensors"
    with train(net.model, net.loss, Adam()) as trainer:
        trainer.step(net.feeds)
        trainer.save_checkpoint(path)
        wanted = trainer.step(net.feeds)
    with train(net.model, net.loss, Adam(), **WHOLE) as trainer:
        trainer.load_checkpoint(path)
        np.testing.assert_allclose(trainer.step(net.feeds), wanted, 1e-6)


def test_a_label_that_is_refused_on_the_way_has_changed_no_row():
    net = NETS["lookup"]()
    with train(net.model, net.loss, Adam()) as trainer:
        trainer.step(net.feeds)
        before = trainer.weights()
        words = np.array([[0, 49_999], [50_000, 1]])
        with pytest.raises(Exception, match="50000"):
            trainer.step({**net.feeds, "words": words})
        after = trainer.weights()
    assert all(np.array_equal(after[key], array) for key, array in before.items())
