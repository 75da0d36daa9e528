"""Names of files tell buffers from models."""

from pathlib import Path

import pytest

from tightship.planner.format.suffixes import holds_buffers


@pytest.mark.parametrize("name", ["a.csv", "a.json", "a.jsonl", "a.tflite"])
def test_files_of_buffers_are_known_by_their_names(name: str) -> None:
    assert holds_buffers(Path(name))


def test_models_are_no_files_of_buffers() -> None:
    assert not holds_buffers(Path("model.onnx"))
