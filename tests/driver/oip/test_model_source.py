"""Sources of models: when two are alike, and what a file cannot have."""

from dataclasses import replace

import pytest

from tightship.driver.oip.config_text import read_text
from tightship.driver.oip.model_source import VERSION, ModelSource, stamp_of
from tightship.errors import InputError


def test_a_file_is_one_version_and_has_no_configuration(tmp_path):
    source = ModelSource(tmp_path / "m.onnx")
    assert source.versions() == {VERSION: source}
    with pytest.raises(InputError, match=r"m\.onnx` was given as a file"):
        source.versions("{}")


def test_the_state_of_a_file_changes_with_it(tmp_path):
    path = tmp_path / "m.onnx"
    source = ModelSource(path)
    assert source.found() == ()
    path.write_bytes(b"a")
    first = source.found()
    path.write_bytes(b"ab")
    assert first != source.found() == stamp_of([str(path), str(tmp_path / "none")])


def test_sources_are_alike_if_loading_them_is():
    stamp = (("m.onnx", 1, 2, 3),)
    source = ModelSource("m.onnx", config=read_text("max_batch_size: 2"), stamp=stamp)
    other_policy = read_text("max_batch_size: 2 version_policy { all {} }")
    assert source.loads_like(replace(source, config=other_policy))
    assert not source.loads_like(replace(source, config=read_text("max_batch_size: 3")))
    assert not source.loads_like(replace(source, config=None))
    assert not source.loads_like(replace(source, stamp=(("m.onnx", 1, 2, 4),)))
    unknown = replace(source, stamp=())
    assert not unknown.loads_like(unknown)
