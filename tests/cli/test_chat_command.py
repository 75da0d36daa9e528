"""`tightship chat`, with lines from a pipe."""

import io
from pathlib import Path

import pytest

from tests.text.vocabularies import chat_model
from tightship.cli.main import main


def chat(path: Path, lines: str, monkeypatch: pytest.MonkeyPatch, *options: str) -> int:
    path.write_bytes(chat_model())
    monkeypatch.setattr("sys.stdin", io.StringIO(lines))
    return main(["chat", str(path), "--temperature", "0", "--max-tokens", "4", *options])


def test_each_line_is_answered_until_the_last(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    lines = "the\n\nin\n/reset\nthe\n/bye\nthe\n"
    assert chat(tmp_path / "m.gguf", lines, monkeypatch, "--system", "a") == 0
    answers = capsys.readouterr().out.splitlines()
    assert len(answers) == 3
    assert answers[0] == answers[2] != answers[1]


def test_a_chat_beyond_the_context_can_begin_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert chat(tmp_path / "m.gguf", "in" * 70 + "\nthe\n", monkeypatch) == 0
    refused, answer = capsys.readouterr().out.splitlines()
    assert "the context holds 64" in refused
    assert answer
