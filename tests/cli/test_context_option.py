"""`tightship plan --context`: sessions of a decoder."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests import decoders
from tests.frontend.gguf.decoders import decoder
from tightship.cli.main import main


@pytest.fixture
def file(tmp_path: Path) -> str:
    path = tmp_path / "decoder.onnx"
    path.write_bytes(decoders.llama())
    return str(path)


def test_a_table(file: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["plan", file, "--context", "1k,2048", "--sessions", "1,8"]) == 0
    shown = capsys.readouterr().out
    assert "256 B of state for each token" in shown
    assert "peak x8" in shown
    lines = [line.split() for line in shown.splitlines()]
    assert {line[0] for line in lines if line} >= {"1024", "2048"}


@pytest.mark.filterwarnings("default:.*trained with:RuntimeWarning")
def test_a_context_beyond_the_training_is_warned_of(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "decoder.gguf"
    path.write_bytes(decoder().written())
    assert main(["plan", str(path), "--context", "64,80"]) == 0
    warned = "the context has 80 tokens; the model was trained with texts of at most 64"
    assert capsys.readouterr().err.count("trained with") == 1
    assert main(["plan", str(path), "--context", "80"]) == 0
    assert warned in capsys.readouterr().err


def test_json_and_the_largest_contexts(file: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["plan", file, "--context", "1k", "--max-memory", "128MiB", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    (plan,) = found["contexts"]
    assert plan["state_bytes"] == 1024 * plan["state_bytes_per_token"]
    largest = {each["sessions"]: each["context"] for each in found["largest_contexts"]}
    assert list(largest) == [1, 2, 4, 8]
    assert largest[1] >= largest[2] >= largest[4] >= largest[8] > 1024


def test_what_fits_no_limit_ends_with_1(file: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["plan", file, "--context", "1k", "--max-memory", "1MiB"]) == 1
    assert "largest context of 1 session(s) within the limit: none" in capsys.readouterr().out


def test_the_largest_contexts_alone(file: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["plan", file, "--sessions", "1,4", "--max-memory", "128MiB"]) == 0
    shown = capsys.readouterr().out
    assert "256 B of state for each token" in shown
    assert "peak" not in shown
    assert "largest context of 4 session(s) within the limit:" in shown
    assert main(["plan", file, "--sessions", "1", "--max-memory", "1MiB"]) == 1


def test_caches_of_another_type(file: str, capsys: pytest.CaptureFixture[str]) -> None:
    plan = ["plan", file, "--context", "1k", "--cache"]
    assert main([*plan, "bfloat16"]) == 0
    assert "128 B of state for each token of a session, as bfloat16" in capsys.readouterr().out
    assert main([*plan, "int8", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["cache"] == "int8"
    assert found["contexts"][0]["state_bytes_per_token"] == 2 * 2 * 2 * (8 + 4)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--sessions", "2"], "needs `--context`"),
        (["--context", "1k", "-o", "x.json"], "choose .html or .svg"),
        (["--context", "1k", "--tune"], "does not go with"),
        (["--context", "4"], "the least is 8"),
        (["--context", "1k", "--shape", "nothing=2"], "batch_size"),
        (["--context", "1k", "--cache", "int4"], "'float16', 'bfloat16', 'int8'"),
        (["--cache", "int8"], "give `--context`"),
        (["--split", "1MiB,1MiB", "--cache", "int8"], "does not go with `--split`"),
    ],
)
def test_options_that_do_not_fit(
    file: str, options: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["plan", file, *options]) == 2
    assert message in capsys.readouterr().err


def test_the_command_imports_nothing_of_other_commands(file: str) -> None:
    """A plan is to take less than a second, of which imports are half."""
    code = (
        "import sys; from tightship.cli.main import main; main(sys.argv[1:]); "
        "print(*sys.modules, file=sys.stderr)"
    )
    command = [sys.executable, "-c", code, "plan", file, "--context", "64"]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    found = set(done.stderr.split())
    assert "tightship.loading.session_plan" in found
    others = (
        "cli.driver_options",
        "planner.format.minimalloc_csv",
        "engine.stored.model",
        "driver",
    )
    assert not found & {f"tightship.{name}" for name in others}
