"""Steps with dropouts: which elements are dropped, and that each part of a step drops the same."""

import math

import numpy as np
import pytest

import tightship
from tests.training.nets import floats, labels, net
from tightship import Adam, GraphError, InputError, Sgd, train
from tightship.engine.kernels.gradient.dropout import kept

SHAPES = {"w1": (10, 16), "b1": (16,), "w2": (16, 24), "w3": (24, 4)}
FEEDS = {"x": floats(8, 10), "labels": labels(4, 8)}


def network(drop, inputs="float[8,10] x", ratios=(0.25, 0.5)):
    """Two dropouts between three layers, or what stands for them."""
    constants = ", ".join(f"float r{i} = {{{ratio}}}" for i, ratio in enumerate(ratios, 1))
    return net(
        f"""dropping ({inputs}) => (float[8,4] y) <{constants}> {{
            a = Gemm (x, w1, b1)
            b = Relu (a)
            c = {drop[0]}
            d = MatMul (c, w2)
            e = Gelu (d)
            f = {drop[1]}
            y = MatMul (f, w3)
        }}""",
        "cross_entropy", FEEDS, **SHAPES,
    )  # fmt: skip


def dropping():
    return network(("Dropout (b, r1)", "Dropout (e, r2)"))


def masks(step, seed):
    """Factors of both dropouts' elements in a step."""
    for stream, (ratio, shape) in enumerate([(0.25, (8, 16)), (0.5, (8, 24))]):
        chosen = kept(np.array([seed, step]), ratio, stream, 0, shape[0] * shape[1])
        yield f"m{stream + 1}", (chosen / (1 - ratio)).reshape(shape).astype(np.float32)


@pytest.mark.parametrize("settings", [
    {}, {"threads": 3}, {"without": ["reorder"]}, {"without": ["onednn"]}, {"recompute": 0.9},
    {"without": ["onednn", "native"]},
])  # fmt: skip
def test_a_step_multiplies_by_masks_that_seed_and_step_say(settings):
    case = dropping()
    inputs = "float[8,10] x, float[8,16] m1, float[8,24] m2"
    masked = network(("Mul (b, m1)", "Mul (e, m2)"), inputs)
    with (
        train(case.model, case.loss, Adam(0.01), seed=7, **settings) as dropped,
        train(masked.model, case.loss, Adam(0.01), **settings) as wanted,
    ):
        for step in range(1, 21):
            loss = wanted.step(FEEDS | dict(masks(step, 7)))
            assert dropped.step(FEEDS) == pytest.approx(loss, rel=1e-5)
        for name, array in wanted.weights().items():
            np.testing.assert_allclose(dropped.weights()[name], array, rtol=1e-4, atol=1e-6)


def losses(count=3, **settings):
    case = dropping()
    with train(case.model, case.loss, Sgd(0.1), **settings) as trainer:
        return [trainer.step(FEEDS) for _ in range(count)]


def test_equal_seeds_drop_the_same_and_others_do_not():
    assert losses(seed=3) == losses(seed=3) == losses(seed=3, recompute=0.9)
    assert losses(seed=3) != losses(seed=4)
    assert losses(seed=3) != losses(seed=3 + 2**40)


def test_a_step_drops_other_elements_than_the_one_before():
    case = dropping()
    with train(case.model, case.loss, Sgd(0.0)) as trainer:
        assert len({trainer.step(FEEDS) for _ in range(5)}) == 5
        trainer.steps = 0
        first = trainer.step(FEEDS)
        trainer.steps, trainer.seed = 0, 1
        assert trainer.step(FEEDS) != first


def test_a_ratio_can_be_given_for_all():
    plain = network(("Identity (b)", "Identity (e)"))
    with train(plain.model, plain.loss, Sgd(0.1)) as trainer:
        wanted = [trainer.step(FEEDS) for _ in range(3)]
    assert losses(dropout=0.0) == wanted
    assert losses(dropout=0.25) not in (wanted, losses())


def test_what_was_trained_drops_nothing_where_it_is_run(tmp_path):
    case = dropping()
    with train(case.model, case.loss, Sgd(0.1)) as trainer:
        trainer.step(FEEDS)
        trainer.save(tmp_path / "new.onnx")
        weights = trainer.weights()
    with tightship.load(tmp_path / "new.onnx") as model:
        found = model(FEEDS["x"])
    with tightship.load(network(("Identity (b)", "Identity (e)")).model) as plain:
        assert np.abs(found - plain(FEEDS["x"])).max() > 0
    a = np.maximum(FEEDS["x"] @ weights["w1"] + weights["b1"], 0) @ weights["w2"]
    gelu = a / 2 * (1 + np.vectorize(math.erf)(a / math.sqrt(2)))
    np.testing.assert_allclose(found, gelu @ weights["w3"], rtol=1e-4, atol=1e-5)


def test_what_is_resumed_drops_what_it_would_have_dropped(tmp_path):
    case = dropping()
    with train(case.model, case.loss, Adam(), seed=11) as trainer:
        trainer.step(FEEDS)
        trainer.save_checkpoint(tmp_path / "at")
        wanted = [trainer.step(FEEDS) for _ in range(3)]
    with train(case.model, case.loss, Adam()) as again:
        again.load_checkpoint(tmp_path / "at")
        assert [again.step(FEEDS) for _ in range(3)] == wanted


def test_no_mask_lies_in_the_arena():
    case = net(
        """deep (float[64,512] x) => (float[64,512] y) {
            a = MatMul (x, w1)
            b = Dropout (a)
            c = MatMul (b, w2)
            d = Dropout (c)
            y = MatMul (d, w3)
        }""",
        "squared_error", {}, w1=(512, 512), w2=(512, 512), w3=(512, 512),
    )  # fmt: skip
    with (
        train(case.model, case.loss, Sgd(), without=["tiles"]) as dropping,
        train(case.model, case.loss, Sgd(), without=["tiles"], dropout=0.0) as plain,
    ):
        assert dropping.memory.arena_bytes == plain.memory.arena_bytes


@pytest.mark.parametrize("settings", [{"dropout": 1.0}, {"dropout": -0.1}, {"seed": -1}])
def test_settings_that_cannot_be_are_refused(settings):
    case = dropping()
    with pytest.raises(InputError, match="; it "):
        train(case.model, case.loss, Sgd(), **settings)


def test_a_dropout_that_drops_no_share_is_refused():
    case = network(("Dropout (b, r1)", "Dropout (e, r2)"), ratios=(0.5, 1.5))
    with pytest.raises(GraphError, match=r"drops 1\.5; it must be a share"):
        train(case.model, case.loss, Sgd())
