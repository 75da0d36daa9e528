"""Training with values that wait in bfloat16: bytes, gradients, files, and every other setting."""

import numpy as np
import onnx
import pytest
from onnx import numpy_helper

from tests.training.nets import NETS, Net, floats, labels, net
from tests.training.test_orders import trained
from tightship import Adam, CapacityError, InputError, Sgd, plan, train

HALF = 2.0**-8
"""Largest relative error of a number that is rounded to bfloat16."""


def deep() -> Net:
    """Sixteen layers, whose results wait for the way back."""
    body = "\n".join(f"h{i} = MatMul (t{i}, w{i})\n t{i + 1} = Tanh (h{i})" for i in range(16))
    return net(
        f"deep (float[512,64] t0) => (float[512,64] y) {{ {body}\n y = MatMul (t16, last) }}",
        "squared_error",
        {"t0": floats(512, 64), "labels": floats(512, 64)[::-1].copy()},
        **{f"w{i}": (64, 64) for i in range(16)}, last=(64, 64),
    )  # fmt: skip


def residual() -> Net:
    """Eight blocks of convolution, normalization and sum."""
    blocks = [
        f"""c{i} = Conv <pads = [1, 1, 1, 1]> (h{i}, w{i})
        n{i} = BatchNormalization (c{i}, scale{i}, b{i}, mean{i}, variance{i})
        r{i} = Relu (n{i})
        h{i + 1} = Add (r{i}, h{i})"""
        for i in range(8)
    ]
    shapes = {f"w{i}": (16, 16, 3, 3) for i in range(8)}
    shapes |= {f"{n}{i}": (16,) for i in range(8) for n in ("scale", "b", "mean", "variance")}
    body = "\n".join(blocks)
    return net(
        f"""residual (float[4,16,24,24] h0) => (float[4,5] y) {{
            {body}
            p = GlobalAveragePool (h8)
            f = Flatten (p)
            y = Gemm <transB = 1> (f, w, b)
        }}""",
        "cross_entropy",
        {"h0": floats(4, 16, 24, 24), "labels": labels(5, 4)},
        **shapes, w=(5, 16), b=(5,),
    )  # fmt: skip


DEEP = {"deep": deep, "residual": residual}


def arena(made, **settings):
    given = made.model
    settings = {"loss": made.loss, "optimizer": Sgd(0.1), **settings}
    return plan(given, **settings).arena_bytes


@pytest.mark.parametrize("optimizer", [Sgd(0.1), Adam(1e-3)])
@pytest.mark.parametrize("name", DEEP)
def test_a_deep_step_takes_at_most_three_fifths_of_the_arena(name, optimizer):
    made = DEEP[name]()
    whole, half = (
        arena(made, optimizer=optimizer, precision=each) for each in ("float32", "bfloat16")
    )
    assert half <= 0.6 * whole


@pytest.mark.parametrize("name", NETS)
def test_no_arena_grows(name):
    made = NETS[name]()
    assert arena(made, precision="bfloat16") <= arena(made)


def test_a_plan_names_the_precision_and_is_what_training_takes():
    made = deep()
    with train(made.model, made.loss, Sgd(0.1), precision="bfloat16") as trainer:
        found = plan(made.model, loss=made.loss, optimizer=Sgd(0.1), precision="bfloat16")
        assert (found.arena_bytes, found.peak_bytes) == (
            trainer.memory.arena_bytes, trainer.peak_bytes,
        )  # fmt: skip
    assert found.key["precision"] == "bfloat16"
    assert "precision" not in plan(made.model, loss=made.loss, optimizer=Sgd(0.1)).key


@pytest.mark.parametrize("name", [*NETS, *DEEP])
def test_gradients_differ_by_roundings_to_bfloat16(name):
    """A maximum pool of `cnn` finds its largest pixels among rounded ones, which may be equal; in
    `deep` sixteen products behind each other round what they multiply, where the processor does."""
    made = {**NETS, **DEEP}[name]()
    moved = []
    for precision in ("float32", "bfloat16"):
        with train(made.model, made.loss, Sgd(1.0), precision=precision) as trainer:
            before = trainer.weights()
            trainer.step(made.feeds)
            after = trainer.weights()
        moved.append({key: before[key].astype(np.float64) - after[key] for key in before})
    for key, whole in moved[0].items():
        error = np.linalg.norm(moved[1][key] - whole)
        share = {"cnn": 16, "deep": 4}.get(name, 2) * HALF
        assert error <= share * np.linalg.norm(whole) + 1e-6, key


@pytest.mark.parametrize("name", DEEP)
def test_the_loss_falls_as_in_float32(name):
    made = DEEP[name]()
    found = []
    for precision in ("float32", "bfloat16"):
        with train(made.model, made.loss, Adam(1e-3), precision=precision) as trainer:
            found.append([trainer.step(made.feeds) for _ in range(20)])
    np.testing.assert_allclose(found[1], found[0], rtol=0.02)
    assert found[1][-1] < found[1][0]


@pytest.mark.parametrize("name", ["cnn", "transformer", "both_ways", *DEEP])
@pytest.mark.parametrize(
    "settings", [{"recompute": 1.0}, {"without": ["in_place"]}, {"without": ["reorder"]}], ids=str
)
def test_every_order_gives_the_same_bits(name, settings):
    made = {**NETS, **DEEP}[name]()
    losses, weights, _ = trained(made, Sgd(0.1), {"precision": "bfloat16"}, poisoned=False)
    given = {"precision": "bfloat16", **settings}
    found, moved, _ = trained(made, Sgd(0.1), given, poisoned=True)
    assert found == losses
    assert all(np.array_equal(moved[key], weights[key]) for key in weights)


def test_two_threads_and_four_workers_run_it():
    made = residual()
    losses, weights, _ = trained(made, Sgd(0.1), {"precision": "bfloat16"}, poisoned=False)
    with train(made.model, made.loss, Sgd(0.1), precision="bfloat16") as trainer:
        assert [trainer.step(made.feeds, workers=4) for _ in range(3)] == losses
        assert all(np.array_equal(weights[key], each) for key, each in trainer.weights().items())
    settings = {"precision": "bfloat16", "threads": 2}
    found, _, _ = trained(made, Sgd(0.1), settings, poisoned=False)
    np.testing.assert_allclose(found, losses, rtol=1e-2)


def test_a_limit_is_kept_below_what_rounding_alone_takes():
    made = deep()
    with train(made.model, made.loss, Sgd(0.1), precision="bfloat16") as trainer:
        whole, losses = trainer.memory, [trainer.step(made.feeds) for _ in range(2)]
    limit = whole.peak_bytes - whole.arena_bytes // 4
    settings = {"precision": "bfloat16", "max_memory": limit}
    with train(made.model, made.loss, Sgd(0.1), **settings) as trainer:
        assert trainer.peak_bytes <= limit
        assert trainer.memory.recomputed_share > 0
        assert [trainer.step(made.feeds) for _ in range(2)] == losses
    with pytest.raises(CapacityError, match="any plan"):
        train(made.model, made.loss, Sgd(0.1), precision="bfloat16", max_memory=1 << 20)


@pytest.mark.parametrize("settings", [{"accumulate": 2}, {}], ids=str)
@pytest.mark.parametrize("optimizer", [Sgd(0.1, momentum=0.9), Adam(0.01, clip_norm=1.0)])
def test_weights_and_their_state_are_float32_in_memory_and_in_files(tmp_path, optimizer, settings):
    made = residual()
    settings = {"precision": "bfloat16", **settings}
    with train(made.model, made.loss, optimizer, **settings) as trainer:
        for _ in range(2):
            trainer.step(made.feeds)
        kept = trainer.weights()
        assert {array.dtype for array in kept.values()} == {np.dtype(np.float32)}
        assert {array.dtype for array in trainer._tensors().values()} == {np.dtype(np.float32)}
        trainer.save(tmp_path / "saved.onnx")
        trainer.save_checkpoint(tmp_path / "at.safetensors")
        later = [trainer.step(made.feeds) for _ in range(4)]
    stored = {each.name: each for each in onnx.load(tmp_path / "saved.onnx").graph.initializer}
    assert all(np.array_equal(numpy_helper.to_array(stored[key]), kept[key]) for key in kept)
    assert any((kept[key].view(np.uint32) & 0xFFFF).any() for key in kept)
    with train(made.model, made.loss, optimizer, **settings) as trainer:
        trainer.load_checkpoint(tmp_path / "at.safetensors")
        assert [trainer.step(made.feeds) for _ in range(4)] == later


@pytest.mark.parametrize("precision", ["float8", "float16", "bf16", "", None, 16])
def test_another_precision_is_refused_with_those_that_exist(precision):
    made = NETS["mlp"]()
    message = "`precision` is .*; it must be `float32` or `bfloat16`."
    with pytest.raises(InputError, match=message):
        train(made.model, made.loss, Sgd(0.1), precision=precision)
