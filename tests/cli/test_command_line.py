"""The command line as a process: what ends it, and where its output goes."""

import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from tightship.cli import main

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
