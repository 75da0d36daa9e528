"""Models from kept programs, by the command line."""

import json
from pathlib import Path

import pytest

from tests.frontend.gguf.decoders import decoder
from tests.text.vocabularies import chat_fields
from tightship.cli.main import main
from tightship.prepared_cache import identity


@pytest.fixture
def model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("TIGHTSHIP_CACHE_DIR", str(tmp_path / "prepared"))
    monkeypatch.setenv("TIGHTSHIP_KEEP_PROGRAMS", "1")
    monkeypatch.setattr(identity, "SETTLED_NS", -(10**18))
    path = tmp_path / "m.gguf"
    path.write_bytes(decoder(type_="Q4_1").written(chat_fields()))
    return path


def generated(model: Path, capsys: pytest.CaptureFixture[str], *more: str) -> str:
    options = ["-p", "the in", "--max-tokens", "8", "--temperature", "0", *more]
    assert main(["generate", str(model), *options]) == 0
    return capsys.readouterr().out


def test_commands_keep_programs_unless_they_are_told_otherwise(
    model: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    wanted = generated(model, capsys, "--anew")
    assert not (model.parent / "prepared").exists()
    assert generated(model, capsys) == generated(model, capsys) == wanted
    assert main(["cache", "list", "--json"]) == 0
    said = json.loads(capsys.readouterr().out)["entries"]
    assert [each["model"] for each in said] == [str(model)] * len(said)
    assert sum("context" in each for each in said) == len(said) - 1
    assert main(["cache", "list"]) == 0
    shown = capsys.readouterr().out
    assert shown.count("sessions of 64") == len(said) - 1
    assert main(["cache", "clear"]) == 0
    assert not list((model.parent / "prepared").glob("*/*"))
