import gc
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import onnx
import pytest

from tests import models
from tests.zoo import light
from tightship.errors import FormatError, InputError
from tightship.frontend.onnx import open_bytes, read, read_bytes
from tightship.graph import Fill, Mapped

GIB = 1 << 30


@pytest.mark.parametrize("name", light.NAMES)
def test_light_models_are_typed_throughout(name: str) -> None:
    graph = read(light.path_of(name))
    case, expected = light.stored_case(name)
    assert graph.inputs == tuple(case.feeds)
    assert graph.value(graph.outputs[0]).static_shape == expected.shape
    unknown = [n for n, value in graph.values.items() if not value.is_static]
    assert unknown == []


def test_weights_made_by_a_fill_stay_fills() -> None:
    graph = read(light.path_of("resnet50"))
    fills = [constant for constant in graph.known.values() if isinstance(constant, Fill)]
    assert sum(node.operator == "ConstantOfShape" for node in graph.nodes) == len(fills)
    assert sum(np.prod(constant.shape) for constant in fills) > 25_000_000


def test_onnx_is_imported_when_a_model_is_read() -> None:
    code = "import sys, tightship.frontend.onnx; sys.exit('onnx' in sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.parametrize("external", [False, True], ids=["inline", "external"])
def test_a_weight_of_a_gibibyte_is_not_read(tmp_path: Path, external: bool) -> None:
    read(light.path_of("zfnet512"))
    path = models.with_hole(tmp_path, GIB, external=external)
    before_bytes = resident_bytes()
    graph = read(path)
    assert resident_bytes() - before_bytes < 4 << 20
    weight = graph.constants["w"]
    assert isinstance(weight, Mapped)
    assert weight.shape == (GIB // 4,)
    assert weight.array()[-1] == 0
    assert graph.value("y").shape == (GIB // 4,)


def test_no_message_of_a_file_stays_once_a_graph_was_made_of_it() -> None:
    file = open_bytes(models.mlp(64).SerializeToString())
    before = messages()
    first = file.graph({"x": (2, 64)})
    assert messages() < before
    second = file.graph({"x": (2, 64)})
    assert messages() < before
    assert [node.name for node in second.nodes] == [node.name for node in first.nodes]
    assert second.values == first.values
    assert file.declared == {"x": ("batch", 64)}


def messages() -> int:
    """Models that protobuf holds, of all that the process has."""
    # `isinstance` would ask each object for its class, of which some of other libraries warn.
    return sum(type(each) is onnx.ModelProto for each in gc.get_objects())


def resident_bytes() -> int:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGESIZE")


def test_bytes_are_read_where_they_are() -> None:
    raw = models.mlp(64).SerializeToString()
    graph = read_bytes(memoryview(raw), allow_symbolic=True)
    weight = graph.constants["w1"].array()
    assert np.shares_memory(weight, np.frombuffer(raw, np.uint8))


def test_a_missing_model_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"gone.onnx` does not exist"):
        read(tmp_path / "gone.onnx")


def test_what_is_no_file_is_not_opened(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path, tmp_path / "pipe", Path("/dev/zero")):
        with pytest.raises(InputError, match="is not a file"):
            read(path)


def test_an_empty_file_is_no_model(tmp_path: Path) -> None:
    path = tmp_path / "empty.onnx"
    path.touch()
    with pytest.raises(FormatError, match=r"empty.onnx` is not an ONNX model"):
        read(path)


def test_a_file_of_zeros_is_no_model(tmp_path: Path) -> None:
    path = tmp_path / "zeros.onnx"
    with path.open("wb") as file:
        file.truncate(GIB)
    with pytest.raises(FormatError, match="not an ONNX model"):
        read(path)


def test_every_truncation_of_a_model_is_refused() -> None:
    raw = models.conv_net().SerializeToString()
    for stop in range(len(raw)):
        with pytest.raises(FormatError, match=r"truncated|it has no|it is empty"):
            read_bytes(raw[:stop])
