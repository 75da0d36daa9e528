"""Gradients of several batches averaged before weights change."""

import numpy as np
import pytest

from tests.training.nets import cnn, floats, labels, net
from tightship import Adam, InputError, Sgd, train

OPTIMIZERS = [
    Sgd(0.1), Sgd(0.05, 0.9, weight_decay=0.1), Adam(0.01, weight_decay=0.1),
    Adam(0.01, clip_norm=0.1),
]  # fmt: skip


def rows(batch):
    """Two layers."""
    return net(
        f"""rows (float[{batch},10] x) => (float[{batch},4] y) {{
            h = Gemm (x, w1, b1)
            g = Relu (h)
            y = Gemm <transB = 1> (g, w2, b2)
        }}""",
        "cross_entropy", {"x": floats(batch, 10), "labels": labels(4, batch)},
        w1=(10, 16), b1=(16,), w2=(4, 16), b2=(4,),
    )  # fmt: skip


def parts(feeds, count):
    """A batch cut into equal ones."""
    tiles = {name: np.split(array, count) for name, array in feeds.items()}
    return [{name: tiles[name][index] for name in feeds} for index in range(count)]


def bits(trainer):
    return {name: array.tobytes() for name, array in trainer._block.tensors.items()}


@pytest.mark.parametrize("optimizer", OPTIMIZERS)
@pytest.mark.parametrize("settings", [{}, {"without": ["reorder"]}, {"recompute": 0.5}])
def test_parts_of_a_batch_change_weights_as_the_whole_does(optimizer, settings):
    whole, part = rows(12), rows(4)
    with (
        train(whole.model, whole.loss, optimizer, **settings) as one,
        train(part.model, part.loss, optimizer, accumulate=3, **settings) as many,
    ):
        for _ in range(5):
            wanted = one.step(whole.feeds)
            found = [many.step(feeds) for feeds in parts(whole.feeds, 3)]
            assert np.mean(found) == pytest.approx(wanted, rel=1e-5)
            if optimizer.clip_norm:
                assert many.gradient_norm == pytest.approx(one.gradient_norm, rel=1e-4)
        for name, array in one.weights().items():
            np.testing.assert_allclose(many.weights()[name], array, rtol=1e-4, atol=1e-5)


def test_weights_change_with_the_last_part_alone():
    case = rows(4)
    with train(case.model, case.loss, Adam(), accumulate=3) as trainer:
        seen = []
        for _ in range(6):
            trainer.step(case.feeds)
            seen.append(trainer.weights()["w1"].tobytes())
    assert seen[0] == seen[1] != seen[2] == seen[3] == seen[4] != seen[5]


def test_running_statistics_change_with_every_part():
    case = cnn()
    with train(case.model, case.loss, Sgd(), accumulate=2) as trainer:
        before = trainer.weights()
        trainer.step(case.feeds)
        after = trainer.weights()
    changed = {name for name in before if (before[name] != after[name]).any()}
    assert changed == {"mean1", "variance1", "mean2", "variance2"}


def test_what_is_gathered_lies_beside_the_arena():
    case = rows(4)
    with (
        train(case.model, case.loss, Sgd()) as plain,
        train(case.model, case.loss, Sgd(), accumulate=2) as gathering,
    ):
        more = gathering.memory.state_bytes - plain.memory.state_bytes
        assert more == plain.memory.weights_bytes
        assert gathering.memory.arena_bytes == plain.memory.arena_bytes


@pytest.mark.parametrize("at", [1, 2, 3])
def test_what_is_resumed_between_parts_goes_on_as_if_it_had_not_stopped(tmp_path, at):
    case = cnn()
    with train(case.model, case.loss, Adam(), accumulate=2) as trainer:
        for _ in range(at):
            trainer.step(case.feeds)
        trainer.save_checkpoint(tmp_path / "at")
        losses = [trainer.step(case.feeds) for _ in range(3)]
        wanted = bits(trainer)
    with train(case.model, case.loss, Adam(), accumulate=2) as again:
        again.load_checkpoint(tmp_path / "at")
        assert [again.step(case.feeds) for _ in range(3)] == losses
        assert bits(again) == wanted
    with (
        train(case.model, case.loss, Adam()) as other,
        pytest.raises(InputError, match="`gathered` of each weight, and the trainer's keeps"),
    ):
        other.load_checkpoint(tmp_path / "at")


@pytest.mark.parametrize("at", [0, 1, 2])
@pytest.mark.parametrize("wrong", [np.nan, np.inf])
def test_a_part_that_is_refused_can_be_left_out(at, wrong):
    case = rows(4)
    with train(case.model, case.loss, Adam(clip_norm=1.0), accumulate=3) as trainer:
        for _ in range(6):
            trainer.step(case.feeds)
        wanted = bits(trainer)
    with train(case.model, case.loss, Adam(clip_norm=1.0), accumulate=3) as trainer:
        for step in range(6):
            if step % 3 == at:
                with pytest.raises(InputError, match="has gradients whose norm is not a number"):
                    trainer.step(case.feeds | {"x": np.full_like(case.feeds["x"], wrong)})
            trainer.step(case.feeds)
        assert bits(trainer) == wanted


def test_no_part_cannot_be_gathered():
    case = rows(4)
    with pytest.raises(InputError, match="`accumulate` is 0; it must be at least 1"):
        train(case.model, case.loss, Sgd(), accumulate=0)


def test_a_profile_is_of_the_part_that_changes_weights():
    case = rows(4)
    with train(case.model, case.loss, Sgd(), accumulate=2) as trainer:
        names = [step.operator for step in trainer.profile(case.feeds, repeat=2).timing.steps]
        assert trainer.steps == 6
    assert names.count("SgdUpdate") == 4
