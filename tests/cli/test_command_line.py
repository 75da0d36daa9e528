"""The command line as a process: what ends it, and where its output goes."""

import json
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from tests.model.priced import priced
from tightship.cli import main
from tightship.loading import apart

CSV = "id,lower,upper,size,offset\na,0,3,4,0\n"
COMMAND = (sys.executable, "-m", "tightship.cli")


def interrupted_while_reading(folder: Path, *before: str, patience_s: float = 30) -> int:
    """The code of a process that is interrupted while it waits for the rest of its file.

    The rest comes after a while in which the process has not ended.
    """
    pipe = folder / "buffers.csv"
    os.mkfifo(pipe)
    process = subprocess.Popen([*before, *COMMAND, "verify", pipe], stdout=subprocess.DEVNULL)
    watch = threading.Timer(60, process.kill)
    watch.start()
    with pipe.open("w") as file:  # open once the process reads
        process.send_signal(signal.SIGINT)
        try:
            return process.wait(timeout=patience_s)
        except subprocess.TimeoutExpired:
            file.write(CSV)
    code = process.wait()
    watch.cancel()
    return code


def test_an_interrupt_ends_it_at_once(tmp_path: Path) -> None:
    assert interrupted_while_reading(tmp_path) == -signal.SIGINT


@pytest.mark.slow
def test_an_interrupt_that_is_ignored_stays_so(tmp_path: Path) -> None:
    ignoring = ("sh", "-c", 'trap "" INT; exec "$@"', "sh")
    assert interrupted_while_reading(tmp_path, *ignoring, patience_s=2) == 0


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="`/dev/full` does not exist")
def test_output_that_finds_no_room_is_said_to(tmp_path: Path) -> None:
    path = tmp_path / "plan.csv"
    path.write_text(CSV)
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            [*COMMAND, "verify", path], stdout=full, stderr=subprocess.PIPE, text=True, check=False
        )
    assert done.returncode == 2
    assert done.stderr == "tightship: No space left on device.\n"


def test_help_for_a_reader_that_has_gone_is_no_error() -> None:
    reading, writing = os.pipe()
    os.close(reading)
    done = subprocess.run(
        [*COMMAND, "plan", "--help"], stdout=writing, stderr=subprocess.PIPE, text=True, check=False
    )
    os.close(writing)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize(
    "command", ["plan", "place", "cost", "run", "share", "verify", "view", "replay"]
)
def test_the_help_of_every_command_names_its_exit_codes(command: str) -> None:
    done = subprocess.run([*COMMAND, command, "--help"], capture_output=True, text=True, check=True)
    assert "Exit codes: 0 " in done.stdout
    assert max(map(len, done.stdout.splitlines())) <= 100


def test_steps_may_run_at_once(capsys, tmp_path):
    assert main(["run", "--repeat", "1", "--workers", "2", "-o", str(tmp_path / "two")]) == 0
    assert main(["run", "--repeat", "1", "-o", str(tmp_path / "one")]) == 0
    for path in (tmp_path / "one").iterdir():
        assert path.read_bytes() == (tmp_path / "two" / path.name).read_bytes()
    capsys.readouterr()
    assert main(["run", "--repeat", "1", "--workers", "2", "--threads", "2"]) == 2
    assert "one thread each" in capsys.readouterr().err


def test_a_plan_for_workers_says_what_it_costs(capsys, tmp_path):
    model = tmp_path / "branched.onnx"
    model.write_bytes(priced().model)
    assert main(["plan", str(model)]) == 0
    assert "workers" not in capsys.readouterr().out
    assert main(["plan", str(model), "--workers", "2"]) == 0
    shown = capsys.readouterr().out
    assert "steps on 2 workers" in shown
    assert "more than for one worker" in shown
    assert max(map(len, shown.splitlines())) <= 100
    assert main(["plan", str(model), "--workers", "2", "--workers-memory", "0", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["concurrency"]["added_bytes"] == 0
    assert all(before < after for before, after in found["concurrency"]["edges"])
    assert len(found["concurrency"]["edges"]) > 0
    assert all("offset_bytes" in tensor for tensor in found["tensors"])
    assert main(["run", str(model), "--workers", "2", "--repeat", "1", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["concurrency"]["workers"] == 2


def test_a_limit_makes_a_plan_for_workers_smaller(capsys, tmp_path, monkeypatch):
    monkeypatch.setattr(apart, "reads_models", lambda: False)
    model = tmp_path / "branched.onnx"
    model.write_bytes(priced(64).model)  # takes more than opening the library
    assert main(["plan", str(model), "--workers", "2", "--json"]) == 0
    limit = json.loads(capsys.readouterr().out)["peak_bytes"] - 1
    options = ["--workers", "2", "--max-memory", str(limit), "--json"]
    assert main(["plan", str(model), *options]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["peak_bytes"] <= limit
    assert found["concurrency"]["bound_bytes"] < found["concurrency"]["plans"][-1]["arena_bytes"]
    assert main(["run", str(model), "--repeat", "1", *options]) == 0


@pytest.mark.parametrize("options", [["--tune"], ["--context", "64"], ["--split", "1GiB,1GiB"]])
def test_what_has_one_worker_is_refused_beside_several(capsys, tmp_path, options):
    model = tmp_path / "branched.onnx"
    model.write_bytes(priced(1).model)
    assert main(["plan", str(model), "--workers", "2", *options]) == 2
    assert "--workers`" in capsys.readouterr().err
