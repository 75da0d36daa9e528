"""Models written with trained weights, in one file or with another beside it."""

import numpy as np
import onnx
import pytest
from onnx.external_data_helper import uses_external_data

import tightship
from tests.training.nets import mlp, net
from tightship import Sgd, train


def trained_and_saved(model, path, **settings):
    """Weights after a step, and the loss of the next."""
    case = mlp()
    with train(model, case.loss, Sgd(0.1), **settings) as trainer:
        trainer.step(case.feeds)
        trainer.save(path)
        return trainer.weights(), trainer.step(case.feeds)


def check_saved(path, wanted, loss, **settings):
    case = mlp()
    onnx.checker.check_model(path)
    with train(path, case.loss, Sgd(0.1), **settings) as again:
        for name, array in again.weights().items():
            np.testing.assert_array_equal(array, wanted[name])
        assert again.step(case.feeds) == loss
    with tightship.load(path) as model:
        assert np.isfinite(model(case.feeds["x"])).all()


def test_more_than_a_file_holds_lies_beside_it(monkeypatch, tmp_path):
    monkeypatch.setattr("tightship.training.save.FILE_BYTES_MAX", 100)
    weights, loss = trained_and_saved(mlp().model, tmp_path / "new.onnx")
    check_saved(tmp_path / "new.onnx", weights, loss)
    assert {path.name for path in tmp_path.iterdir()} == {"new.onnx", "new.onnx.data"}


@pytest.mark.parametrize("place", ["old.onnx", "new.onnx", "further/new.onnx"])
def test_what_lay_beside_the_model_lies_beside_the_new_one(tmp_path, place):
    old, new = tmp_path / "old.onnx", tmp_path / place
    new.parent.mkdir(exist_ok=True)
    model = onnx.load_from_string(mlp().model)
    onnx.save(model, old, save_as_external_data=True, location="old.data", size_threshold=0)
    weights, loss = trained_and_saved(old, new, weights=["w1", "b2"])
    if new.parent != tmp_path:
        (tmp_path / "old.data").unlink()
    check_saved(new, weights, loss, weights=["w1", "b2"])
    saved = onnx.load(new, load_external_data=False)
    assert all(uses_external_data(tensor) for tensor in saved.graph.initializer)
    assert {t.external_data[0].value for t in saved.graph.initializer} == {f"{new.name}.data"}


def test_tensors_beside_a_model_are_aligned_and_apart(tmp_path, monkeypatch):
    monkeypatch.setattr("tightship.training.save.FILE_BYTES_MAX", 100)
    trained_and_saved(mlp().model, tmp_path / "new.onnx")
    end = 0
    for tensor in onnx.load(tmp_path / "new.onnx", load_external_data=False).graph.initializer:
        entries = {entry.key: entry.value for entry in tensor.external_data}
        assert int(entries["offset"]) % 64 == 0
        assert int(entries["offset"]) >= end
        end = int(entries["offset"]) + int(entries["length"])
    assert end == (tmp_path / "new.onnx.data").stat().st_size


IN_TRAINING = """training (float[8,10] x) => (float[8,4] y)
        <float r = {{0.5}}, bool on = {{{on}}}> {{
    a = Gemm (x, w1, b1)
    b, mean_next, variance_next = BatchNormalization <training_mode = 1>
        (a, scale1, b2, mean1, variance1)
    c = Dropout (b, r, on)
    y = MatMul (c, w2)
}}"""
SHAPES = {
    "w1": (10, 16), "b1": (16,), "scale1": (16,), "b2": (16,), "mean1": (16,), "variance1": (16,),
    "w2": (16, 4),
}  # fmt: skip


def test_a_model_of_training_is_saved_as_one_of_inference(tmp_path):
    path, feeds = tmp_path / "new.onnx", mlp().feeds
    model = net(IN_TRAINING.format(on=1), "cross_entropy", feeds, **SHAPES).model
    with train(model, "cross_entropy", Sgd(0.1)) as trainer:
        trainer.step(feeds)
        trainer.save(path)
        w = trainer.weights()
    onnx.checker.check_model(path)
    a = feeds["x"] @ w["w1"] + w["b1"]
    b = (a - w["mean1"]) / np.sqrt(w["variance1"] + 1e-5) * w["scale1"] + w["b2"]
    with tightship.load(path) as saved:
        np.testing.assert_allclose(saved(feeds["x"]), b @ w["w2"], rtol=1e-4, atol=1e-4)


def test_a_dropout_that_was_off_stays_off(tmp_path):
    path, feeds = tmp_path / "new.onnx", mlp().feeds
    model = net(IN_TRAINING.format(on=0), "cross_entropy", feeds, **SHAPES).model
    with train(model, "cross_entropy", Sgd(0.1)) as trainer:
        trainer.save(path)
        wanted = trainer.step(feeds)
    with train(path, "cross_entropy", Sgd(0.1), seed=9) as again:
        assert again.step(feeds) == wanted


def test_a_file_that_cannot_be_written_leaves_the_old_one(tmp_path, monkeypatch):
    path = tmp_path / "new.onnx"
    trained_and_saved(mlp().model, path)
    before = path.read_bytes()
    monkeypatch.setattr("tightship.training.save.bytes_of", lambda _: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        trained_and_saved(mlp().model, path)
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]
