"""The vocabulary of an ONNX model lies beside it, or above its folder `onnx`."""

from pathlib import Path

from tightship.embedding.vocabulary_file import vocabulary_beside


def test_a_vocabulary_is_found_beside_or_above_onnx(tmp_path: Path) -> None:
    inner, other = tmp_path / "onnx", tmp_path / "other"
    for folder in (inner, other):
        folder.mkdir()
    (tmp_path / "tokenizer.json").write_text("{}")
    assert vocabulary_beside(inner / "m.onnx") == tmp_path / "tokenizer.json"
    assert vocabulary_beside(other / "m.onnx") is None
    (inner / "tokenizer.json").write_text("{}")
    assert vocabulary_beside(inner / "m.onnx") == inner / "tokenizer.json"
