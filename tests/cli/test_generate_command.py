"""`tightship generate`."""

import io
import json
from pathlib import Path

import pytest

from tests.text.vocabularies import chat_model
from tightship.cli.main import main


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> str:
    found = tmp_path_factory.mktemp("text") / "m.gguf"
    found.write_bytes(chat_model())
    return str(found)


def test_a_text_goes_on(path: str, capsys: pytest.CaptureFixture[str]) -> None:
    command = ["generate", path, "-p", "the in", "--temperature", "0", "--max-tokens", "6"]
    assert main(command) == 0
    whole = capsys.readouterr().out
    assert whole.startswith("the in")
    assert main([*command, "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert whole == f"the in{said['text']}\n"
    assert (said["completion_tokens"], said["finish_reason"]) == (6, "length")
    assert said["prompt_tokens"] == 3


@pytest.mark.filterwarnings("default:.*trained with:RuntimeWarning")
def test_a_context_beyond_the_training_is_warned_of(
    path: str, capsys: pytest.CaptureFixture[str]
) -> None:
    command = ["generate", path, "-p", "a", "--max-tokens", "1", "--context"]
    for context, is_long in (("64", False), ("80", True)):
        assert main([*command, context]) == 0
        warned = "the context has 80 tokens; the model was trained with texts of at most 64"
        assert (warned in capsys.readouterr().err) is is_long


def test_a_seed_repeats_it(path: str, capsys: pytest.CaptureFixture[str]) -> None:
    command = ["generate", path, "-p", "a", "--temperature", "3", "--max-tokens", "9", "--json"]
    assert main(command) == 0
    first = json.loads(capsys.readouterr().out)
    assert main([*command, "--seed", str(first["seed"])]) == 0
    assert json.loads(capsys.readouterr().out)["text"] == first["text"]


def test_a_question_is_asked_by_the_template(
    path: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO("the"))
    command = ["generate", path, "-p", "-", "--chat", "--max-tokens", "2", "--json"]
    assert main(command) == 0
    assert json.loads(capsys.readouterr().out)["prompt_tokens"] == 4  # <s><|u|> the<|a|>


def test_what_does_not_fit_is_refused(
    path: str, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    assert main(["generate", path, "-p", "in" * 99]) == 2
    assert "The prompt has 100 tokens; the context holds 64" in capsys.readouterr().err
    assert main(["generate", path, "-p", "a", "--max-memory", "1MiB"]) == 1
    assert main(["generate", path, "-p", "a", "--top-p", "3"]) == 2
    assert main(["generate", str(tmp_path / "none.gguf"), "-p", "a"]) == 2


def test_an_answer_follows_a_schema_in_a_file(
    path: str, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    schema = tmp_path / "schema.json"
    schema.write_text('{"type": "sun"}')
    command = ["generate", path, "-p", "a", "--json-schema"]
    assert main([*command, str(schema)]) == 2
    assert "The schema cannot be followed" in capsys.readouterr().err
    assert main([*command, str(tmp_path / "none.json")]) == 2
