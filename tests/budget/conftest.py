"""A working folder with models."""

import pytest

from tests.small_models import dense, nonzero


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "model.onnx").write_bytes(dense()[0])
    (tmp_path / "dynamic.onnx").write_bytes(nonzero())
    return tmp_path
