"""Training that goes on from a file, to the last bit."""

import json
import struct

import numpy as np
import pytest

from tests.training.nets import NETS, mlp, net
from tightship import Adam, FormatError, InputError, Sgd, train
from tightship.safetensors import read_contents

OPTIMIZERS = {"sgd": Sgd(0.05), "momentum": Sgd(0.05, 0.9), "adam": Adam(0.01)}


def all_bits(trainer):
    """Weights, statistics and what the optimizer keeps of them."""
    return {name: array.tobytes() for name, array in trainer._block.tensors.items()}


@pytest.mark.parametrize("how", ["sgd", pytest.param("momentum", marks=pytest.mark.slow), "adam"])
@pytest.mark.parametrize("name", NETS)
def test_what_is_resumed_goes_on_as_if_it_had_not_stopped(name, how, tmp_path):
    case, optimizer = NETS[name](), OPTIMIZERS[how]
    path = tmp_path / "at.safetensors"
    with train(case.model, case.loss, optimizer) as trainer:
        for _ in range(3):
            trainer.step(case.feeds)
        trainer.rate *= 0.7
        trainer.save_checkpoint(path)
        losses = [trainer.step(case.feeds) for _ in range(3)]
        bits = all_bits(trainer)
    with train(case.model, case.loss, optimizer) as again:
        again.load_checkpoint(path)
        assert again.steps == 3
        assert again.rate == trainer.rate
        assert [again.step(case.feeds) for _ in range(3)] == losses
        assert all_bits(again) == bits
    assert [each.name for each in tmp_path.iterdir()] == ["at.safetensors"]


def written(tmp_path, optimizer=None):
    """A checkpoint of `mlp`."""
    case, path = mlp(), tmp_path / "at.safetensors"
    with train(case.model, case.loss, optimizer or Adam()) as trainer:
        trainer.step(case.feeds)
        trainer.save_checkpoint(path)
    return path


def test_tensors_are_called_as_torch_calls_them(tmp_path):
    with written(tmp_path).open("rb") as file:
        found = read_contents(file.fileno())
    weights = ("w1", "b1", "w2", "b2")
    state = [f"optimizer.state.{w}.{part}" for w in weights for part in ("exp_avg", "exp_avg_sq")]
    assert set(found.tensors) == {*weights, *state}
    told = {"steps": "1", "rate": "0.001", "seed": "0"}
    assert found.metadata == {"format": "tightship.checkpoint.1", **told}
    with written(tmp_path, Sgd(0.1, 0.5)).open("rb") as file:
        assert "optimizer.state.w1.momentum_buffer" in read_contents(file.fileno()).tensors


def refused(trainer, path, message, kind=InputError):
    """Nothing has changed when a file is refused."""
    before = all_bits(trainer), trainer.steps, trainer.rate
    with pytest.raises(kind, match=message):
        trainer.load_checkpoint(path)
    assert (all_bits(trainer), trainer.steps, trainer.rate) == before


def test_a_file_of_another_optimizer_is_refused(tmp_path):
    path, case = written(tmp_path), mlp()
    with train(case.model, case.loss, Sgd(0.1, 0.9)) as trainer:
        refused(trainer, path, "has `exp_avg` and `exp_avg_sq` of each .* keeps `momentum_buffer`")
    with train(case.model, case.loss, Sgd(0.1)) as trainer:
        refused(trainer, path, "and the trainer's keeps nothing")


def other(**shapes):
    return net(
        "other (float[8,10] x) => (float[8,4] y) { y = Gemm (x, w1, b1) }", "cross_entropy", {},
        **shapes,
    )  # fmt: skip


def test_a_file_of_another_model_is_refused(tmp_path):
    path = written(tmp_path, Sgd())
    case = mlp()
    with train(case.model, case.loss, Sgd(), weights=["w1", "w2", "b1"]) as trainer:
        refused(trainer, path, r"has a tensor `b2`, which the trainer does not have \(1 such\)")
    with train(case.model, case.loss, Sgd(), weights=["w1"]) as trainer:
        trainer.save_checkpoint(tmp_path / "one")
    with train(case.model, case.loss, Sgd()) as trainer:
        refused(trainer, tmp_path / "one", r"has no tensor `b1`, .* needs \(3 such\)")
    model = other(w1=(10, 4), b1=(4,)).model
    with train(model, case.loss, Sgd(), weights=["w1"]) as trainer:
        refused(
            trainer, tmp_path / "one",
            r"`w1` of checkpoint .* is F32 \[10, 16\]; the trainer needs F32 \[10, 4\]",
        )  # fmt: skip


def test_what_is_no_checkpoint_is_refused(tmp_path):
    path, case = written(tmp_path), mlp()
    content = path.read_bytes()
    text = json.dumps({"w": {"dtype": "F32", "shape": [], "data_offsets": [0, 4]}}).encode()
    bad = {
        "format `None` where": struct.pack("<Q", len(text)) + text + b"0000",
        "damaged: ValueError": content.replace(b'"steps": "1"', b'"steps": "x"'),
        "`steps` is -1 and": content.replace(b'"steps": "1"', b'"steps":"-1"'),
        "tensors lie in bytes": content[:-1],
        "file has at most": b"\xff" * 100,
    }
    with train(case.model, case.loss, Adam()) as trainer:
        for message, each in bad.items():
            path.write_bytes(each)
            refused(trainer, path, message, FormatError)
        refused(trainer, tmp_path / "none", "none", FileNotFoundError)


def test_a_checkpoint_that_cannot_be_written_leaves_the_old_one(tmp_path, monkeypatch):
    path, case = written(tmp_path), mlp()
    before = path.read_bytes()
    with train(case.model, case.loss, Adam()) as trainer:
        monkeypatch.setattr("tightship.safetensors.bytes_of", lambda _: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            trainer.save_checkpoint(path)
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]


def test_a_closed_trainer_has_no_checkpoint(tmp_path):
    case = mlp()
    trainer = train(case.model, case.loss, Sgd())
    trainer.close()
    for use in (trainer.save_checkpoint, trainer.load_checkpoint):
        with pytest.raises(InputError, match="The trainer is closed"):
            use(tmp_path / "at")


def test_torch_reads_the_weights_by_their_names(tmp_path):
    safetensors = pytest.importorskip("safetensors.numpy", reason="the format's own library")
    found = safetensors.load_file(written(tmp_path))
    case = mlp()
    with train(case.model, case.loss, Adam()) as trainer:
        trainer.step(case.feeds)
        for name, array in trainer.weights().items():
            np.testing.assert_array_equal(found[name], array)
