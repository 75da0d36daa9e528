"""`tightship cache`: what there is, and none of it."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.prepared_cache.test_cache import ABOUT, writer
from tests.small_models import dense
from tightship.cli import main
from tightship.prepared_cache import PreparedCache


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of prepared models, with one of them in it."""
    path = tmp_path / "prepared"
    monkeypatch.setenv("TIGHTSHIP_CACHE_DIR", str(path))
    monkeypatch.delenv("TIGHTSHIP_CACHE_SIZE", raising=False)
    cache = PreparedCache(path, 1 << 20)
    cache.open()
    cache.read(ABOUT, writer(bytes(5000), []), Path.read_bytes)
    return path


def test_what_there_is_is_listed(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["cache", "list"]) == 0
    text = capsys.readouterr().out
    assert text.splitlines()[0].endswith(f"of 8.00 GiB in {folder}")
    assert ABOUT.model in text
    assert "1 thread(s)" in text


def test_the_list_can_be_had_as_json(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["cache", "list", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["folder"] == str(folder)
    (row,) = found["entries"]
    assert row["key"] == ABOUT.key
    assert row["size_bytes"] > 5000
    assert row["complete"]


def test_clearing_says_how_much_is_free_again(folder: Path, capsys: pytest.CaptureFixture) -> None:
    assert main(["cache", "clear", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["removed"] == 1
    assert found["removed_bytes"] > 5000
    assert list(folder.iterdir()) == []
    assert main(["cache", "clear"]) == 0
    assert capsys.readouterr().out == f"removed 0 prepared models, 0 B, from {folder}\n"


@pytest.mark.usefixtures("folder")
def test_a_size_that_is_none_is_refused(monkeypatch, capsys) -> None:
    monkeypatch.setenv("TIGHTSHIP_CACHE_SIZE", "lots")
    assert main(["cache", "list"]) == 2
    assert "TIGHTSHIP_CACHE_SIZE: `lots` is not an amount of memory" in capsys.readouterr().err


def test_what_cannot_be_shared_is_said_in_a_line(tmp_path: Path) -> None:
    (tmp_path / "dense.onnx").write_bytes(dense()[0])
    environment = {**os.environ, "TIGHTSHIP_CACHE_DIR": str(tmp_path / "dense.onnx" / "folder")}
    command = [sys.executable, "-m", "tightship.cli", "run", "--share", "--shape", "x=1x32"]
    done = subprocess.run(
        [*command, tmp_path / "dense.onnx"],
        env=environment, capture_output=True, text=True, check=True,
    )  # fmt: skip
    (line,) = [said for said in done.stderr.splitlines() if said.startswith("tightship: ")]
    assert line.startswith("tightship: `dense.onnx` is loaded for this process alone: `")
    assert line.endswith("Not a directory.")
