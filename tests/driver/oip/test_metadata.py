"""Lengths of inputs and outputs that metadata reports, and those reported as variable."""

import numpy as np
import onnx
import pytest

import tightship
from tests.models import parse
from tightship._core import RequestMetrics
from tightship.driver.oip.metadata import config_of, metadata_of
from tightship.driver.oip.model_source import ModelSource
from tightship.driver.oip.request_counts import JoinedCount
from tightship.driver.oip.served_model import ServedModel

TEXTS = {
    "m (float[n,4] x) => (float[n,12] y) { y = Concat<axis=1>(x, x, x) }": [-1, 12],
    "m (float[n,4] x) => (float[4,n] y) { y = Transpose(x) }": [4, -1],
    "m (float[n,4] x) => (float[a,b] y) { y = Gelu(x) }": [-1, 4],
    "m (float[n,4] x) => (int64[2] y) { y = Shape(x) }": [2],
    "m (float[n,4] x) => (int64[a,b] y) { y = NonZero(x) }": [2, -1],
    "m (float[n,4] x) => (float[a] y) { s = Constant<value_ints=[-1]>() y = Reshape(x, s) }": [-1],
}


def served(model):
    """The model as one that was given as a file."""
    return ServedModel.of("m", "1", model, ModelSource("m.onnx"), RequestMetrics(), JoinedCount())


def without_shapes(model):
    """The model, which says no shape of its outputs."""
    for output in model.graph.output:
        output.type.tensor_type.ClearField("shape")
    return model


@pytest.mark.parametrize("is_declared", [True, False])
@pytest.mark.parametrize(("text", "wanted"), TEXTS.items())
def test_lengths_that_hold_for_all_inputs_are_reported(text, wanted, is_declared):
    model = parse(text)
    source = (model if is_declared else without_shapes(model)).SerializeToString()
    with tightship.load(source, shapes={"x": (3, 4)}) as loaded:
        said = metadata_of(served(loaded), ["1"])
        assert said["inputs"][0]["shape"] == [-1, 4]
        assert said["outputs"][0]["shape"] == wanted
        assert config_of(served(loaded))["output"][0]["dims"] == wanted
        for rows in (3, 5):
            (found,) = loaded.run({"x": np.ones((rows, 4), np.float32)}).values()
            lengths = zip(wanted, found.shape, strict=True)
            assert all(told in {-1, length} for told, length in lengths)


@pytest.mark.parametrize(("rows", "wanted"), [((3,), [3, 12]), ((3, 5), [-1, 12])])
def test_a_prepared_model_tells_what_its_programs_have_in_common(tmp_path, rows, wanted):
    source, path = tmp_path / "m.onnx", tmp_path / "m.tship"
    onnx.save(parse(next(iter(TEXTS))), source)
    tightship.prepare(source, path, shapes=[{"x": (each, 4)} for each in rows])
    with tightship.load(path) as loaded:
        said = metadata_of(served(loaded), ["1"])
    assert said["outputs"][0]["shape"] == wanted
    assert said["inputs"][0]["shape"] == [wanted[0], 4]


def test_a_model_that_cannot_be_typed_without_lengths_tells_none(monkeypatch):
    from tightship.errors import GraphError
    from tightship.frontend.onnx import OnnxFile

    graph = OnnxFile.graph

    def typed(file, shapes=None, *, allow_symbolic=False):
        if allow_symbolic:
            raise GraphError("It cannot be typed.")
        return graph(file, shapes)

    monkeypatch.setattr(OnnxFile, "graph", typed)
    source = parse(next(iter(TEXTS))).SerializeToString()
    with tightship.load(source, shapes={"x": (3, 4)}) as loaded:
        assert metadata_of(served(loaded), ["1"])["outputs"][0]["shape"] == [-1, -1]
