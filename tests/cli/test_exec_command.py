"""A program run under a limit keeps its exit code, its streams and its signals."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

EXEC = [sys.executable, "-m", "tightship.cli", "exec"]
MIB = 1 << 20
PAST_LIMIT = f"""
try:
    bytearray({512 * MIB})
except MemoryError:
    print("refused")
"""
IN_THREAD_AND_CHILD = f"""
import subprocess, sys, threading
def ask():
    try:
        bytearray({512 * MIB})
    except MemoryError:
        print("refused", flush=True)
thread = threading.Thread(target=ask)
thread.start()
thread.join()
if len(sys.argv) == 1:
    subprocess.run([sys.executable, __file__, "child"], check=True)
"""
WAITING = """
import os, signal, sys, time
def note(number, _):
    print(signal.Signals(number).name, flush=True)
    if number == signal.SIGTERM:
        os._exit(7)
for each in (signal.SIGINT, signal.SIGUSR1, signal.SIGTERM):
    signal.signal(each, note)
print("ready", flush=True)
while True:
    time.sleep(0.1)
"""


def run(*arguments: str, **options) -> subprocess.CompletedProcess[str]:
    return subprocess.run([*EXEC, *arguments], capture_output=True, text=True, check=False,
                          timeout=60, **options)  # fmt: skip


def python(code: str) -> list[str]:
    return ["--", sys.executable, "-c", code]


@pytest.mark.parametrize("code", [0, 1, 3, 120])
def test_the_exit_code_is_the_programs(code) -> None:
    assert run(*python(f"raise SystemExit({code})")).returncode == code


def test_a_program_ended_by_a_signal_has_the_code_that_shells_give_it() -> None:
    done = run(*python(f"import os; os.kill(os.getpid(), {int(signal.SIGKILL)})"))
    assert done.returncode == 128 + signal.SIGKILL
    assert "ended by SIGKILL" in done.stderr


def test_a_program_that_cannot_be_started_has_the_code_of_shells(tmp_path) -> None:
    (tmp_path / "text").write_text("not a program")
    assert run("--", "tightship-absent").returncode == 127
    done = run("--", str(tmp_path / "text"))
    assert done.returncode == 126
    assert "cannot be run" in done.stderr


def test_nothing_to_run_and_no_folder_for_the_report_are_bad_usage(tmp_path) -> None:
    marker = tmp_path / "ran"
    assert run().returncode == run("--").returncode == 2
    assert run("-o", str(tmp_path / "no" / "out"), "--", "touch", str(marker)).returncode == 2
    assert not marker.exists()


def test_streams_are_the_programs_and_the_report_is_on_standard_error() -> None:
    done = run("--", "cat", "-", input="from outside")
    assert done.stdout == "from outside"
    assert "cat - · exit code 0" in done.stderr


def test_options_behind_the_programs_name_are_the_programs() -> None:
    done = run("--json", "--", sys.executable, "-c", "import sys; print(sys.argv[1:])",
               "--json", "--", "-x")  # fmt: skip
    assert done.stdout == "['--json', '--', '-x']\n"
    assert json.loads(done.stderr)["exit_code"] == 0


def test_the_system_refuses_what_is_past_the_limit() -> None:
    done = run("--max-memory", "256MiB", *python(PAST_LIMIT))
    assert (done.returncode, done.stdout) == (0, "refused\n")
    assert run(*python(PAST_LIMIT)).stdout == ""


def test_threads_and_children_are_under_the_limit_too(tmp_path) -> None:
    script = tmp_path / "asking.py"
    script.write_text(IN_THREAD_AND_CHILD)
    done = run("--max-memory", "256MiB", "--", sys.executable, str(script))
    assert (done.returncode, done.stdout) == (0, "refused\nrefused\n")


def test_the_program_cannot_raise_its_limit() -> None:
    code = "import resource; print(resource.getrlimit(resource.RLIMIT_DATA))"
    assert run("--max-memory", "256MiB", *python(code)).stdout == f"({256 * MIB}, {256 * MIB})\n"


def test_a_lower_limit_from_outside_stays() -> None:
    code = "import resource; print(resource.getrlimit(resource.RLIMIT_DATA)[1])"
    outside = 2048 * MIB
    command = [*EXEC, "--max-memory", "4GiB", "--json", *python(code)]
    # By a shell: with threads here, of gRPC or JAX, code between fork and exec may not run.
    limited = ["sh", "-c", f'ulimit -d {outside >> 10} && exec "$@"', "sh", *command]
    done = subprocess.run(limited, capture_output=True, text=True, check=False, timeout=60)
    assert done.stdout == f"{outside}\n", done.stderr
    assert json.loads(done.stderr)["limit_bytes"] == outside


def test_a_report_says_what_was_held(tmp_path) -> None:
    code = f"import time; held = bytearray({100 * MIB}); time.sleep(1.5)"
    out = tmp_path / "held.json"
    done = run("--json", "-o", str(out), "--max-memory", "1GiB", *python(code))
    assert done.stderr == ""
    found = json.loads(out.read_text())
    assert 100 * MIB < found["peak_data_bytes"] < 400 * MIB
    assert 90 * MIB < found["peak_resident_bytes"] < 400 * MIB  # some idle pages may have gone
    kinds = found["mapping_kinds"]
    assert kinds["anonymous"]["resident_bytes"] > 90 * MIB
    assert sum(each["data_bytes"] for each in kinds.values()) <= found["peak_data_bytes"]


@pytest.mark.parametrize(
    "names", [["SIGTERM"], ["SIGINT", "SIGTERM"], ["SIGUSR1", "SIGINT", "SIGTERM"]]
)
def test_signals_are_passed_on(names) -> None:
    with subprocess.Popen([*EXEC, *python(WAITING)], stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, text=True) as process:  # fmt: skip
        assert process.stdout.readline() == "ready\n"
        for name in names:
            process.send_signal(getattr(signal, name))
            assert process.stdout.readline() == f"{name}\n"
        assert process.wait(timeout=60) == 7
        assert "exit code 7" in process.stderr.read()


def test_a_terminals_interrupt_reaches_the_program_once() -> None:
    """A terminal signals all processes of its foreground, so it is not passed on again."""
    control, terminal = os.openpty()
    with subprocess.Popen(
        ["setsid", "--ctty", *EXEC, *python(WAITING)], stdin=terminal, stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL, text=True,
    ) as process:  # fmt: skip
        assert process.stdout.readline() == "ready\n"
        os.write(control, b"\x03")
        assert process.stdout.readline() == "SIGINT\n"
        time.sleep(0.3)
        os.kill(process.pid, signal.SIGTERM)
        assert process.stdout.readline() == "SIGTERM\n"
        process.wait(timeout=60)
    os.close(control)
    os.close(terminal)


def test_no_process_is_left_when_a_full_standard_error_ends_the_report() -> None:
    if not Path("/dev/full").exists():
        pytest.skip("`/dev/full` does not exist")
    with Path("/dev/full").open("w") as full:
        done = subprocess.run([*EXEC, "--", "sh", "-c", "exit 5"], stderr=full, check=False)
    assert done.returncode == 5
