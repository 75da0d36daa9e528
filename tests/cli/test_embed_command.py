"""`tightship embed`."""

import io
import json
from pathlib import Path

import numpy as np
import pytest

from tests.frontend.gguf.encoders import embedding_model, encoder, ids_of, vector
from tightship.cli import embed_command
from tightship.cli.main import main


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    found = tmp_path_factory.mktemp("embed")
    (found / "e.gguf").write_bytes(embedding_model())
    (found / "r.gguf").write_bytes(embedding_model(pooling=4, labels=1))
    return found


def test_each_text_has_a_line(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["embed", str(folder / "e.gguf"), "the cat", "--truncate", "a dog"]) == 0
    lines = capsys.readouterr().out.splitlines()
    for text, line in zip(("the cat", "a dog"), lines, strict=True):
        wanted = vector(encoder(), ids_of(text))
        np.testing.assert_allclose(json.loads(line), wanted, atol=1e-6)


def test_texts_may_stand_behind_options(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    command = ["embed", str(folder / "r.gguf"), "--query", "the cat", "a dog", "a mat"]
    assert main(command) == 0
    lines = [line.split("\t") for line in capsys.readouterr().out.splitlines()]
    assert [text for _, text in lines] == ["a dog", "a mat"]
    assert main([*command, "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    np.testing.assert_allclose(said["scores"], [float(score) for score, _ in lines], rtol=1e-5)
    with pytest.raises(SystemExit):
        main([*command, "--bogus"])


def test_lines_of_standard_input_are_texts(
    folder: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    monkeypatch.setattr(embed_command, "TEXTS", 2)
    text = "the cat\na dog ran far\na mat\n"
    for more in ([], ["-"]):
        monkeypatch.setattr("sys.stdin", io.StringIO(text))
        assert main(["embed", str(folder / "e.gguf"), *more, "--json"]) == 0
        said = json.loads(capsys.readouterr().out)
        assert (said["texts"], said["tokens"], said["dimension"]) == (3, 14, 64)
        assert (said["pooling"], said["programs"][0]) == ("mean", [1, 64])
    monkeypatch.setattr("sys.stdin", io.StringIO(text))
    path = tmp_path / "out.npy"
    assert main(["embed", str(folder / "e.gguf"), "-o", str(path)]) == 0
    np.testing.assert_allclose(np.load(path), said["embeddings"], atol=1e-6)


def test_what_does_not_fit_is_refused(
    folder: Path, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    path = str(folder / "e.gguf")
    assert main(["embed", path, "cat " * 70]) == 2
    assert "has 72 tokens; the model takes 64" in capsys.readouterr().err
    assert main(["embed", path, "cat " * 70, "--truncate"]) == 0
    assert main(["embed", path, "a", "--max-memory", "1MiB"]) == 1
    assert main(["embed", path, "a", "--query", "b", "--pooling", "cls"]) == 2
    assert main(["embed", path, "a", "--context", "65"]) == 2
    assert main(["embed", str(tmp_path / "none.gguf"), "a"]) == 2
