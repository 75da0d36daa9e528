"""`hand_over`, which runs in a process of its own, called in this one."""

import os
from collections.abc import Iterator
from pathlib import Path

import onnx
import pytest

from tests.models import conv_net, mlp
from tests.small_models import nonzero
from tightship import available
from tightship.engine.compile.compile_graph import Settings
from tightship.engine.stored.model import StoredModel
from tightship.errors import CapacityError, FormatError, GraphError, OutOfMemoryError
from tightship.loading import handing_over, opening
from tightship.loading.handing_over import hand_over, plan_file

NO_LIMITS = (None, None)


@pytest.fixture
def memory() -> Iterator[int]:
    """Descriptor of an empty file in memory."""
    file = os.memfd_create("test")
    yield file
    os.close(file)


def path_of(content: bytes, folder: Path) -> str:
    path = folder / "model.onnx"
    path.write_bytes(content)
    return str(path)


def test_a_program_is_written(memory: int, tmp_path: Path) -> None:
    path = path_of(conv_net().SerializeToString(), tmp_path)
    said = hand_over(path, memory, Settings(), NO_LIMITS)
    plan = StoredModel(f"/proc/self/fd/{memory}").plan()
    assert plan.model == "model.onnx"
    planned = plan_file(path, Settings())
    assert said == planned.apart is not None
    assert plan.runtime_bytes == planned.runtime_bytes


def test_constants_that_the_file_computes_need_room_too(memory, tmp_path, monkeypatch) -> None:
    path = path_of(conv_net().SerializeToString(), tmp_path)
    needed = plan_file(path, Settings()).weights_bytes
    for left, has_room in ((needed - 1, False), (needed, True)):
        monkeypatch.setattr(available, "available_bytes", lambda left=left: left)
        said = hand_over(path, memory, Settings(), NO_LIMITS)
        assert (said is not None) == has_room
        assert (os.fstat(memory).st_size > 0) == has_room


def test_errors_of_the_model_are_returned(memory: int, tmp_path: Path) -> None:
    whole = conv_net().SerializeToString()
    cases = {FormatError: b"# a text\n", GraphError: whole.replace(b"Relu", b"Rely")}
    for kind, content in cases.items():
        path = path_of(content, tmp_path)
        assert isinstance(hand_over(path, memory, Settings(), NO_LIMITS), kind)
    error = hand_over(path_of(whole, tmp_path), memory, Settings(), (1 << 20, None))
    assert isinstance(error, CapacityError)
    assert error.limit_bytes == 1 << 20
    assert os.fstat(memory).st_size == 0


def test_many_weights_beside_the_file_are_left(memory: int, tmp_path: Path, monkeypatch) -> None:
    path = tmp_path / "model.onnx"
    onnx.save(conv_net(), path, save_as_external_data=True, location="w.bin", size_threshold=0)
    monkeypatch.setattr(handing_over, "WEIGHTS_BYTES_MAX", 100)
    assert hand_over(str(path), memory, Settings(), NO_LIMITS) is None
    assert os.fstat(memory).st_size == 0


@pytest.mark.parametrize("content", [mlp().SerializeToString(), nonzero()])
def test_what_a_stored_program_cannot_do_is_left(content, memory: int, tmp_path: Path) -> None:
    """Lengths that the file leaves open, and steps whose shapes depend on data."""
    settings = Settings({"x": (2, 16)}) if content != nonzero() else Settings()
    path = path_of(content, tmp_path)
    assert hand_over(path, memory, settings, NO_LIMITS) is None
    assert os.fstat(memory).st_size == 0


@pytest.mark.parametrize(
    "error", [OutOfMemoryError("none", requested_bytes=1), OSError(), ValueError()]
)
def test_what_may_be_no_fault_of_the_model_is_left(
    error, memory: int, tmp_path, monkeypatch
) -> None:
    def fail(*_: object) -> None:
        raise error

    monkeypatch.setattr(opening, "open_for", fail)
    path = path_of(conv_net().SerializeToString(), tmp_path)
    assert hand_over(path, memory, Settings(), NO_LIMITS) is None
