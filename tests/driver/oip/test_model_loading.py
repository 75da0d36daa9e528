"""Sources of a version, as its configuration completes them before it is loaded."""

import pytest

from tests.driver.oip.triton_repository import FIXED, write_model, write_version
from tightship.driver.oip.model_config import ConfigMismatchError
from tightship.driver.oip.model_folder import ModelFolder
from tightship.driver.oip.model_loading import needed_bytes, planned
from tightship.errors import InputError
from tightship.loading import plan


@pytest.fixture
def folder(tmp_path):
    return write_model(tmp_path, "added", (10,))


def read(folder, config):
    (folder / "config.pbtxt").write_text(config)
    (source,) = ModelFolder(folder).versions().values()
    return planned(source)


def test_the_first_plan_is_for_the_largest_batch(folder):
    source = read(folder, "max_batch_size: 8")
    assert source.shapes == {"x": (8, 4)}
    source = read(folder, 'max_batch_size: 6 input { name: "x" dims: -1 }')
    assert source.shapes == {"n": (6,)}
    source = read(folder, 'input { name: "x" dims: [3, 4] }')
    assert source.shapes == {"x": (3, 4)}
    given = ModelFolder(folder, lambda name, _: {"x": (5, 4)} if name == "added" else {})
    (source,) = map(planned, given.versions().values())
    assert source.shapes == {"x": (5, 4)}


def test_a_configuration_is_compared_before_the_model_is_loaded(folder):
    write_version(folder, 10, text=FIXED)
    with pytest.raises(ConfigMismatchError, match="its first dimension must be open"):
        read(folder, "max_batch_size: 2")
    with pytest.raises(ConfigMismatchError, match="input `z` is not in the model"):
        read(folder, 'input { name: "z" dims: 1 }')


def test_a_large_batch_does_not_count_where_two_models_must_fit(folder):
    """Arenas are shared, so that the old model need not go first because of a larger batch."""
    source = read(folder, f"max_batch_size: {1 << 30}")
    assert plan(source.path, shapes=source.shapes).peak_bytes > 1 << 33
    assert needed_bytes(source) < 1 << 27


def test_a_file_that_is_not_there_is_named(folder):
    with pytest.raises(InputError, match=r"Version 10 has no file `none\.onnx`"):
        read(folder, 'default_model_filename: "none.onnx"')
    (folder / "10" / "model.onnx").unlink()
    with pytest.raises(InputError, match=r"Version 10 has no file `model\.onnx`"):
        read(folder, "")
