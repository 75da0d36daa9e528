import gc
from concurrent.futures import ThreadPoolExecutor
from threading import Event

import numpy as np
import pytest

import tightship
from tests.models import parse
from tests.training.nets import floats, mlp
from tightship import Adam, CapacityError, InputError, Sgd
from tightship.engine.run.executable import Executable
from tightship.training.block import Block
from tightship.training.train import train

RATE = 0.1


def reference(net, rate, steps):
    """The two-layer perceptron of `mlp`, by hand and in float64."""
    weights = tightship.train(net.model, net.loss, Sgd(rate)).weights()
    w1, b1, w2, b2 = (weights[name].astype(np.float64) for name in ("w1", "b1", "w2", "b2"))
    x, labels = net.feeds["x"].astype(np.float64), net.feeds["labels"]
    losses = []
    for _ in range(steps):
        h = x @ w1 + b1
        g = np.maximum(h, 0)
        scores = g @ w2.T + b2
        p = np.exp(scores - scores.max(1, keepdims=True))
        p /= p.sum(1, keepdims=True)
        rows = np.arange(len(labels))
        losses.append(-np.log(p[rows, labels]).mean())
        p[rows, labels] -= 1
        dy = p / len(labels)
        dh = (dy @ w2) * (h > 0)
        w2, b2 = w2 - rate * dy.T @ g, b2 - rate * dy.sum(0)
        w1, b1 = w1 - rate * x.T @ dh, b1 - rate * dh.sum(0)
    return losses, {"w1": w1, "b1": b1, "w2": w2, "b2": b2}


@pytest.mark.parametrize("without", [(), ("onednn",), ("reorder",)])
def test_a_perceptron_learns_what_arithmetic_by_hand_says(without) -> None:
    net = mlp()
    losses, weights = reference(net, RATE, 20)
    with train(net.model, net.loss, Sgd(RATE), without=without) as trainer:
        found = [trainer.step(net.feeds) for _ in range(20)]
        np.testing.assert_allclose(found, losses, rtol=1e-5)
        for name, array in trainer.weights().items():
            np.testing.assert_allclose(array, weights[name], rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("optimizer", [Sgd(RATE), Sgd(RATE, momentum=0.9), Adam(0.01)])
def test_every_optimizer_lowers_the_loss(optimizer) -> None:
    net = mlp()
    with train(net.model, net.loss, optimizer) as trainer:
        losses = [trainer.step(net.feeds) for _ in range(20)]
    assert losses[-1] < losses[0] / 1.5


def test_a_rate_of_nought_changes_no_weight() -> None:
    net = mlp()
    with train(net.model, net.loss, Adam()) as trainer:
        before = trainer.weights()
        trainer.rate = 0.0
        trainer.step(net.feeds)
        kept = trainer.weights()
        trainer.rate = 0.1
        trainer.step(net.feeds)
        assert all((kept[name] == array).all() for name, array in before.items())
        assert any((trainer.weights()[name] != array).any() for name, array in before.items())


@pytest.mark.parametrize("make", [Sgd, Adam])
def test_biases_keep_what_they_are_where_matrices_alone_decay(make) -> None:
    net, found = mlp(), {}
    settings = {"plain": {}, "all": {"weight_decay": 0.5}}
    settings["matrices"] = {"weight_decay": 0.5, "decays_vectors": False}
    for name, each in settings.items():
        with train(net.model, net.loss, make(0.1, **each)) as trainer:
            for array in trainer.weights(copy=False).values():
                array[...] += 1
            trainer.step(net.feeds)
            found[name] = trainer.weights()
    for name, array in found["matrices"].items():
        same, other = ("plain", "all") if name.startswith("b") else ("all", "plain")
        assert (array == found[same][name]).all()
        assert (array != found[other][name]).any()


@pytest.mark.parametrize("make", [Sgd, Adam])
def test_a_weight_may_have_a_rate_of_its_own(make) -> None:
    net, factors, found = mlp(), {"w1": 0.25, "b2": 2.0}, {}
    for factor in (1.0, 0.25, 2.0, None):
        own = factors if factor is None else {}
        optimizer = make(RATE, weight_decay=0.5, rate_factors=own)
        with train(net.model, net.loss, optimizer) as trainer:
            trainer.rate *= 0.5 * (factor or 1.0)
            trainer.step(net.feeds)
            found[factor] = trainer.weights()
    for name, array in found[None].items():
        np.testing.assert_array_equal(array, found[factors.get(name, 1.0)][name])


def test_a_rate_of_its_own_for_what_is_not_trained_is_refused() -> None:
    net = mlp()
    with pytest.raises(InputError, match="`rate_factors` has `w3`, which is not trained: w1, b1"):
        train(net.model, net.loss, Sgd(RATE, rate_factors={"w3": 0.1}))
    with pytest.raises(InputError, match=r"`rate_factors\['w1'\]` is -1"):
        Sgd(RATE, rate_factors={"w1": -1})


def test_what_is_saved_is_a_model_with_the_weights_of_the_last_step(tmp_path) -> None:
    net = mlp()
    with train(net.model, net.loss, Sgd(RATE)) as trainer:
        for _ in range(3):
            trainer.step(net.feeds)
        trainer.save(tmp_path / "trained.onnx")
        next_loss = trainer.step(net.feeds)
    with train(tmp_path / "trained.onnx", net.loss, Sgd(RATE)) as again:
        assert again.step(net.feeds) == next_loss
    with tightship.load(tmp_path / "trained.onnx") as model:
        assert model(net.feeds["x"]).shape == (8, 4)
    assert [path.name for path in tmp_path.iterdir()] == ["trained.onnx"]


def test_a_step_takes_one_block_of_what_was_stated() -> None:
    net = mlp()
    with train(net.model, net.loss, Adam()) as trainer:
        memory, block = trainer.memory, trainer._block
        assert block.size_bytes == memory.weights_bytes + memory.state_bytes + memory.arena_bytes
        assert block.arena.size_bytes == memory.arena_bytes
        sizes = [4 * n for n in (160, 16, 64, 4)]
        padded = sum(-(-size // 64) * 64 for size in sizes)
        assert (memory.weights_bytes, memory.state_bytes) == (padded, 2 * padded)
        assert memory.arena_bytes <= memory.given_arena_bytes
        assert trainer.peak_bytes == (
            block.size_bytes + memory.constants_bytes + memory.io_bytes + memory.runtime_bytes
        )


def test_weights_are_copies_unless_asked_otherwise() -> None:
    net = mlp()
    with train(net.model, net.loss, Sgd(RATE)) as trainer:
        copies, views = trainer.weights(), trainer.weights(copy=False)
        trainer.step(net.feeds)
        assert (copies["w1"] != views["w1"]).any()


def test_a_limit_is_held_before_anything_is_allocated() -> None:
    net = mlp()
    with pytest.raises(
        CapacityError, match=r"A training step needs at least .*, or give the batch"
    ):
        train(net.model, net.loss, Sgd(RATE), max_memory="1MiB")
    with pytest.raises(CapacityError, match=r"allow more recomputation \(`recompute`\)"):
        train(net.model, net.loss, Sgd(RATE), max_memory="1MiB", recompute=0.0)


def test_gradients_that_are_clipped_are_said_to_be_there_at_once() -> None:
    net, sizes = mlp(), 4 * (160 + 16 + 64 + 4)
    with train(net.model, net.loss, Sgd(RATE)) as trainer:
        assert trainer.memory.clipped_bytes == 0
    with train(net.model, net.loss, Sgd(RATE, clip_norm=1.0)) as trainer:
        assert trainer.memory.clipped_bytes == sizes <= trainer.memory.arena_bytes
    with pytest.raises(CapacityError, match=f"leave out `clip_norm`, which keeps {sizes} B"):
        train(net.model, net.loss, Sgd(RATE, clip_norm=1.0), max_memory="1MiB")


def test_threads_that_make_steps_of_one_trainer_alternate(monkeypatch) -> None:
    net, began, order, is_second = mlp(), [], [], Event()
    with train(net.model, net.loss, Sgd(RATE)) as trainer, ThreadPoolExecutor(1) as pool:

        def slow(*_) -> None:
            order.append("start")
            if began:
                is_second.set()
            else:
                began.append(pool.submit(trainer.step, net.feeds))
                is_second.wait(0.2)
            order.append("end")

        monkeypatch.setattr("tightship.training.trainer.execute", slow)
        trainer.step(net.feeds)
        began[0].result()
    assert order == ["start", "end", "start", "end"]


@pytest.mark.parametrize(("name", "close"), [("double", 1e-6), ("float16", 3e-2)])
def test_weights_of_other_floats_are_trained_as_arithmetic_says(name, close):
    dtype = {"double": np.float64, "float16": np.float16}[name]
    x, w, labels = (floats(*shape).astype(dtype) for shape in ((4, 6), (6, 3), (4, 3)))
    text = f"net ({name}[4,6] x) => ({name}[4,3] y) {{ y = MatMul (x, w) }}"
    model = parse(text, w=w).SerializeToString()
    now = w.astype(np.float64)
    with train(model, "squared_error", Sgd(0.05, clip_norm=0.5)) as trainer:
        for _ in range(3):
            apart = x.astype(np.float64) @ now - labels
            slope = 2 * x.astype(np.float64).T @ apart / apart.size
            norm = np.linalg.norm(slope)
            assert abs(trainer.step({"x": x, "labels": labels}) - np.mean(apart**2)) < close
            assert abs(trainer.gradient_norm - norm) < close
            now -= 0.05 * slope * min(1, 0.5 / norm)
        np.testing.assert_allclose(trainer.weights()["w"], now, close, close)


def test_a_closed_trainer_holds_neither_block_nor_program() -> None:
    def alive() -> int:
        gc.collect()
        return sum(type(thing) in (Block, Executable) for thing in gc.get_objects())

    net, before = mlp(), alive()
    trainer = train(net.model, net.loss, Sgd(RATE))
    assert alive() == before + 2
    trainer.close()
    assert alive() == before


@pytest.mark.parametrize(("kind", "numbers", "message"), [
    (Sgd, {"rate": -0.1}, "`rate` is -0.1; it must be at least 0"),
    (Sgd, {"rate": float("nan")}, "`rate` is nan"),
    (Sgd, {"momentum": -1}, "`momentum` is -1"),
    (Adam, {"beta1": 1.0}, "`beta1` is 1.0; it must be at least 0, and below 1"),
    (Adam, {"beta2": 1.5}, "`beta2` is 1.5"),
    (Adam, {"epsilon": -1}, "`epsilon` is -1"),
    (Adam, {"weight_decay": -1}, "`weight_decay` is -1"),
    (Sgd, {"weight_decay": float("inf")}, "`weight_decay` is inf"),
    (Sgd, {"nesterov": True}, "`momentum` is 0; give both"),
    (Sgd, {"clip_norm": 0.0}, "`clip_norm` is 0.0; it must be above 0"),
    (Adam, {"clip_norm": float("nan")}, "`clip_norm` is nan"),
])  # fmt: skip
def test_numbers_that_no_update_can_have_are_refused(kind, numbers, message) -> None:
    with pytest.raises(InputError, match=message):
        kind(**numbers)


def test_a_closed_trainer_says_so() -> None:
    net = mlp()
    trainer = train(net.model, net.loss, Sgd(RATE))
    trainer.close()
    for use in (lambda: trainer.step(net.feeds), trainer.weights):
        with pytest.raises(InputError, match="The trainer is closed"):
            use()
