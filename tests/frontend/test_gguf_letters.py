"""The letters of a GGUF file."""

from pathlib import Path

from tightship.frontend.gguf_letters import begins_as_gguf


def test_letters_tell_and_not_the_name(tmp_path: Path) -> None:
    path = tmp_path / "model.bin"
    path.write_bytes(b"GGUF...")
    assert begins_as_gguf(path)
    assert begins_as_gguf(b"GGUF")
    path.write_bytes(b"GG")
    assert not begins_as_gguf(path)
    assert not begins_as_gguf(tmp_path / "none.gguf")
    assert not begins_as_gguf(tmp_path)
