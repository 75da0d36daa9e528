"""Tensors of a served model: those of the model, narrowed by its configuration."""

from dataclasses import replace

import tightship
from tests.models import parse
from tightship._core import RequestMetrics
from tightship.driver.oip.config_text import read_text
from tightship.driver.oip.metadata import config_of, metadata_of
from tightship.driver.oip.model_source import ModelSource
from tightship.driver.oip.request_counts import JoinedCount
from tightship.driver.oip.served_model import ServedModel

TEXT = """m (float[n,m] x) => (float[n,m] y, float[n,m] z) {
    y = Relu(x)
    z = Neg(x)
}"""


def served(config):
    source = ModelSource("m.onnx", config=read_text(config))
    with tightship.load(parse(TEXT).SerializeToString(), shapes={"x": (3, 4)}) as model:
        return ServedModel.of("m", "7", model, source, RequestMetrics(), JoinedCount())


def test_a_configuration_narrows_lengths_and_chooses_outputs():
    found = served('max_batch_size: 8 input { name: "x" dims: 4 } output { name: "z" dims: -1 }')
    said = metadata_of(found, ["6", "7"])
    assert said["versions"] == ["6", "7"]
    assert said["inputs"] == [{"name": "x", "datatype": "FP32", "shape": [-1, 4]}]
    assert said["outputs"] == [{"name": "z", "datatype": "FP32", "shape": [-1, -1]}]
    said = config_of(found)
    assert said["input"] == [{"name": "x", "data_type": "TYPE_FP32", "dims": [4]}]
    assert said["output"] == [{"name": "z", "data_type": "TYPE_FP32", "dims": [-1]}]
    assert said["max_batch_size"] == 8


def test_without_tensors_the_configuration_leaves_those_of_the_model():
    found = served("")
    assert [each["name"] for each in config_of(found)["output"]] == ["y", "z"]
    assert config_of(found)["input"][0]["dims"] == [-1, -1]
    assert not found.is_constant_time


def test_a_configuration_is_told_as_it_was_given():
    said = config_of(served('instance_group { count: 2 } parameters { key: "a" value {} }'))
    assert said["instance_group"] == [{"count": 2, "kind": "KIND_CPU"}]
    assert said["parameters"] == {"a": {"string_value": ""}}
    assert said["version_policy"] == {"latest": {"num_versions": 1}}
    assert "dynamic_batching" not in said


def test_requests_that_fit_one_configuration_are_checked_anew_for_another():
    found = served("max_batch_size: 8")
    found.accepted.add("a form")
    assert replace(found, source=found.source).accepted == set()
