import os
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, numpy_helper

from tests import models
from tightship.errors import FormatError
from tightship.frontend.onnx import open_file, read, read_bytes
from tightship.graph import Mapped


def write(folder: Path, **entries: str) -> Path:
    """A model whose weight of 8 bytes lies where the entries say; beside it 64 bytes of data."""
    model = models.parse("agraph (float[2] x) => (float[2] y) { y = Add (x, w) }")
    weight = model.graph.initializer.add(name="w", data_type=1, dims=[2])
    weight.data_location = TensorProto.EXTERNAL
    for key, value in entries.items():
        weight.external_data.add(key=key, value=value)
    (folder / "data.bin").write_bytes(np.arange(16, dtype=np.float32).tobytes())
    path = folder / "model.onnx"
    path.write_bytes(model.SerializeToString())
    return path


def test_weights_are_those_that_onnx_loads(tmp_path: Path) -> None:
    path = models.with_external_data(tmp_path)
    graph = read(path, allow_symbolic=True)
    for tensor in onnx.load(path).graph.initializer:
        constant = graph.constants[tensor.name]
        assert isinstance(constant, Mapped)
        assert np.array_equal(constant.array(), numpy_helper.to_array(tensor))


def test_tensors_of_one_file_share_its_mapping(tmp_path: Path) -> None:
    graph = read(models.with_external_data(tmp_path), allow_symbolic=True)
    assert len({id(constant.file) for constant in graph.constants.values()}) == 1


def test_an_offset_is_counted_in_bytes(tmp_path: Path) -> None:
    graph = read(write(tmp_path, location="data.bin", offset="8", length="8"))
    assert graph.constants["w"].array().tolist() == [2, 3]


def test_a_folder_below_the_model_may_hold_data(tmp_path: Path) -> None:
    path = write(tmp_path, location="sub/data.bin")
    (tmp_path / "sub").mkdir()
    (tmp_path / "data.bin").rename(tmp_path / "sub/data.bin")
    assert read(path).constants["w"].array().tolist() == [0, 1]


def test_a_link_to_a_model_finds_the_data_beside_the_model(tmp_path: Path) -> None:
    for name in ("blobs", "snapshot"):
        (tmp_path / name).mkdir()
    path = write(tmp_path / "blobs", location="data.bin")
    for name in ("model.onnx", "data.bin"):
        (tmp_path / "snapshot" / name).symlink_to(Path("../blobs") / name)
    assert read(tmp_path / "snapshot" / path.name).constants["w"].array().tolist() == [0, 1]


@pytest.mark.parametrize(
    "location",
    ["../data.bin", "/etc/passwd", "a/../../data.bin", "..\\data.bin", "C:\\data.bin", "", "a\0b"],
)
def test_a_location_outside_the_folder_is_refused(tmp_path: Path, location: str) -> None:
    (tmp_path / "in").mkdir()
    path = write(tmp_path / "in", location=location)
    (tmp_path / "data.bin").write_bytes(bytes(64))
    with pytest.raises(FormatError, match=r"`w`.*relative path"):
        read(path)


def test_a_link_that_leaves_the_folder_is_refused(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    path = write(tmp_path / "in", location="link.bin")
    (tmp_path / "secret.bin").write_bytes(bytes(64))
    (tmp_path / "in/link.bin").symlink_to(tmp_path / "secret.bin")
    with pytest.raises(FormatError, match="outside the model's folder"):
        read(path)


def test_a_link_to_itself_is_refused(tmp_path: Path) -> None:
    path = write(tmp_path, location="loop.bin")
    (tmp_path / "loop.bin").symlink_to("loop.bin")
    with pytest.raises(FormatError, match="`w`"):
        read(path)


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(FormatError, match=r"`w` is stored in `gone.bin`, which does not exist"):
        read(write(tmp_path, location="gone.bin"))


def test_a_pipe_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(FormatError, match="not a file"):
        read(write(tmp_path, location="pipe"))


def test_a_name_too_long_for_a_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(FormatError, match="cannot be opened"):
        read(write(tmp_path, location="x" * 5000))


@pytest.mark.parametrize(
    ("offset", "length", "reason"),
    [
        ("60", "8", r"bytes \[60, 68\) of `data.bin`, which has 64"),
        (str(1 << 62), "8", "which has 64"),
        ("0", "12", "has 12 bytes .* need 8"),
        ("-8", "8", "number of bytes"),
        ("8x", "8", "number of bytes"),
        ("9" * 5000, "8", "number of bytes"),
        ("²", "8", "number of bytes"),
    ],
)
def test_a_range_that_cannot_be_is_refused(
    tmp_path: Path, offset: str, length: str, reason: str
) -> None:
    with pytest.raises(FormatError, match=reason):
        read(write(tmp_path, location="data.bin", offset=offset, length=length))


def test_bytes_without_a_folder_have_no_external_data(tmp_path: Path) -> None:
    path = write(tmp_path, location="data.bin")
    with pytest.raises(FormatError, match="read it from its path"):
        read_bytes(path.read_bytes())


def test_files_with_the_rest_of_a_model_are_named(tmp_path: Path) -> None:
    assert open_file(models.with_external_data(tmp_path)).data_files() == (
        tmp_path / "weights.bin",
    )


def test_a_tensor_deep_in_a_model_names_its_file(tmp_path: Path) -> None:
    path = write(tmp_path, location="data.bin")
    model = onnx.load(path, load_external_data=False)
    tensor = model.graph.initializer[0]
    branch = onnx.helper.make_graph(
        [onnx.helper.make_node("Constant", [], ["c"], value=tensor)],
        "branch", [], [onnx.helper.make_tensor_value_info("c", TensorProto.FLOAT, [2])],
    )  # fmt: skip
    condition = onnx.helper.make_node("If", ["b"], ["i"], then_branch=branch, else_branch=branch)
    model.graph.node.append(condition)
    model.graph.initializer.clear()
    path.write_bytes(model.SerializeToString())
    assert open_file(path).data_files() == (tmp_path / "data.bin",)


def test_a_model_whole_in_its_file_names_no_other(tmp_path: Path) -> None:
    path = tmp_path / "model.onnx"
    onnx.save(models.mlp(), path)
    assert open_file(path).data_files() == ()


def test_a_file_outside_is_not_named_either(tmp_path: Path) -> None:
    (tmp_path / "inner").mkdir()
    with pytest.raises(FormatError, match="relative path"):
        open_file(write(tmp_path / "inner", location="../data.bin")).data_files()
