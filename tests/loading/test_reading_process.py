"""`ReadingProcess`: calls in another process, and how it ends."""

import json
import math
import os
import resource
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from tightship.errors import CapacityError
from tightship.loading.reading_process import ReadingProcess, is_reading_process


def test_calls_go_to_one_other_process_and_come_back() -> None:
    with ReadingProcess() as process:
        pids = {process.call(os.getpid) for _ in range(2)}
        assert process.call(math.gcd, 12, 18) == 6
        assert process.call(resource.getrlimit, resource.RLIMIT_DATA) == (
            resource.getrlimit(resource.RLIMIT_DATA)
        )
    assert len(pids) == 1
    assert os.getpid() not in pids
    assert not has_process(pids.pop())


def test_only_the_other_process_is_one() -> None:
    with ReadingProcess() as process:
        assert process.call(is_reading_process)
    assert not is_reading_process()


def refuse(*, progress=None) -> None:
    if progress is not None:
        progress(1, 2)
    raise CapacityError("too large", needed_bytes=2, limit_bytes=1)


def test_errors_and_progress_come_as_from_a_function_here() -> None:
    seen = []
    with ReadingProcess() as process:
        with pytest.raises(CapacityError, match="too large") as raised:
            process.call(refuse, progress=lambda *figures: seen.append(figures))
        assert raised.value.needed_bytes == 2
        with pytest.raises(FileNotFoundError, match="nowhere") as missing:
            process.call(os.stat, "/nowhere")
        assert missing.value.filename == "/nowhere"
        assert process.call(abs, -1) == 1
    assert seen == [(1, 2)]


def refuse_strangely() -> None:
    class StrangeError(Exception):
        pass

    raise StrangeError("beyond pickle")


def test_an_error_that_cannot_be_sent_is_told() -> None:
    with (
        ReadingProcess() as process,
        pytest.raises(RuntimeError, match="beyond pickle"),
    ):
        process.call(refuse_strangely)


def test_what_it_prints_is_no_answer(capfd: pytest.CaptureFixture[str]) -> None:
    with ReadingProcess() as process:
        process.call(os.write, 1, b"printed\n")
        assert process.call(abs, -1) == 1
    assert capfd.readouterr() == ("", "printed\n")


def test_progress_that_raises_ends_it() -> None:
    def stop(_done: int, _total: int) -> None:
        raise InterruptedError("no longer needed")

    with ReadingProcess() as process:
        with pytest.raises(InterruptedError, match="no longer needed"):
            process.call(refuse, progress=stop)
        assert process.call(abs, -1) == 1  # in another process


def test_one_that_dies_is_told_and_replaced() -> None:
    with ReadingProcess() as process:
        with pytest.raises(ChildProcessError, match="ended with exit code 9"):
            process.call(os._exit, 9)
        assert process.call(abs, -1) == 1


@pytest.mark.parametrize("name", ["", "apache2", "python3", "missing/python3"])
def test_without_an_interpreter_calls_run_here(name: str, tmp_path: Path, monkeypatch) -> None:
    """A program that embeds Python must not be started again; what cannot answer is not asked."""
    for each in ("apache2", "python3"):
        (tmp_path / each).write_text(f"#!/bin/sh\ntouch {tmp_path}/{each}-started\n")
        (tmp_path / each).chmod(0o700)
    monkeypatch.setattr(sys, "executable", name and str(tmp_path / name))
    with ReadingProcess() as process:
        assert process.call(os.getpid) == os.getpid()
        with pytest.raises(CapacityError):
            process.call(refuse, progress=lambda *_: None)
    assert not (tmp_path / "apache2-started").exists()


def test_the_folder_of_the_process_shadows_no_module(tmp_path: Path, monkeypatch) -> None:
    (tmp_path / "json.py").write_text("raise SystemExit('the wrong one')")
    monkeypatch.chdir(tmp_path)
    with ReadingProcess() as process:
        assert process.call(os.getpid) != os.getpid()
        assert process.call(os.getcwd) == str(tmp_path)


APART = """
import os
from tightship.loading.reading_process import ReadingProcess
with ReadingProcess() as process:
    process.call(os.system, "echo printed")
    raise SystemExit(process.call(os.getpid) == os.getpid())
"""


@pytest.mark.parametrize("closed", ["2>&-", "0<&-", "0<&- 1>&- 2>&-"])
def test_a_daemon_without_standard_streams_may_call(closed: str) -> None:
    command = ["sh", "-c", f'exec "$0" -c "$1" {closed}', sys.executable, APART]
    assert subprocess.run(command, check=False, timeout=60).returncode == 0


def test_a_thread_may_call() -> None:
    found = []

    def call() -> None:
        with ReadingProcess() as process:
            found.append(process.call(os.getpid))

    threads = [threading.Thread(target=call) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len({*found, os.getpid()}) == 4


WAITING = """
import os, time
from tightship.loading.reading_process import ReadingProcess
with ReadingProcess() as process:
    print(process.call(os.getpid), flush=True)
    process.call(time.sleep, 600)
"""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_it_ends_with_its_parent(number: signal.Signals) -> None:
    command = [sys.executable, "-c", WAITING]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdout=pipe, stderr=pipe, text=True) as parent:
        child = int(parent.stdout.readline())
        assert has_process(child)
        parent.send_signal(number)
        said = parent.communicate()[1]
    assert ("KeyboardInterrupt" in said) == (number == signal.SIGINT)
    assert said.count("Traceback") == (number == signal.SIGINT)
    for _ in range(600):
        if not has_process(child):
            return
        time.sleep(0.05)
    raise AssertionError(child)


SENDING = """
import json
from tightship.loading.reading_process import ReadingProcess
def peak():
    for line in open("/proc/self/status"):
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) << 10
data = bytes(range(256)) * (1 << 18)
with ReadingProcess() as process:
    process.call(len, b"")
    before = peak()
    print(json.dumps([process.call(len, data), peak() - before]))
"""


def test_a_large_argument_is_sent_without_a_copy() -> None:
    done = subprocess.run([sys.executable, "-c", SENDING], capture_output=True, check=True)
    length, gained = json.loads(done.stdout)
    assert length == 1 << 26
    assert gained < 1 << 23


def has_process(pid: int) -> bool:
    """Whether a process runs, rather than waits to be reaped."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except (FileNotFoundError, ProcessLookupError):
        return False


def test_it_ends_quietly_if_its_parent_ended_before_it_was_ready() -> None:
    command = [sys.executable, "-c", "from tightship.loading.reading_process import serve; serve()"]
    answers, reads_none = os.pipe()[::-1]
    os.close(reads_none)
    with os.fdopen(answers, "wb") as stdout:
        ended = subprocess.run(
            command, stdin=subprocess.DEVNULL, stdout=stdout, stderr=subprocess.PIPE, check=False
        )
    assert (ended.stderr, ended.returncode) == (b"", 1)
