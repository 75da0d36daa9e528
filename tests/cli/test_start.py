"""First actions of a process of the command line, and its reports of its own faults."""

import os
import signal
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
COMMAND = f"{sys.executable} -m tightship.cli"
INTERRUPTED_WHILE_IMPORTING = """
import os, signal, sys
from tightship_start import command_line

class Interrupting:
    def find_spec(self, name, *_):
        if name == "tightship":
            os.kill(os.getpid(), signal.SIGINT)

sys.meta_path.insert(0, Interrupting())
command_line()
"""


def test_the_command_imports_nothing_before_it_listens_for_interrupts() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert project["scripts"] == {"tightship": "tightship_start:command_line"}
    code = "import sys, tightship_start; assert not {'tightship', 'numpy'} & set(sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_an_interrupt_while_the_package_is_imported_ends_it_without_a_word() -> None:
    command = [sys.executable, "-c", INTERRUPTED_WHILE_IMPORTING]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (-signal.SIGINT, "", "")


@pytest.mark.parametrize("closed", ["<&-", ">&-", "2>&-", "<&- >&- 2>&-"])
@pytest.mark.parametrize(("arguments", "code"), [("--version", 0), ("plan nowhere.onnx", 2)])
def test_closed_streams_change_no_exit_code(closed, arguments, code) -> None:
    command = f"{COMMAND} {arguments} {closed}"
    done = subprocess.run(command, shell=True, capture_output=True, text=True, check=False)
    assert done.returncode == code
    assert "Traceback" not in done.stderr
    assert "nowhere.onnx" not in done.stdout


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="`/dev/full` does not exist")
def test_a_full_standard_error_changes_no_exit_code() -> None:
    command = f"unset PYTHONUNBUFFERED; {COMMAND} plan nowhere.onnx 2>/dev/full"
    done = subprocess.run(command, shell=True, check=False)
    assert done.returncode == 2


def test_a_fault_of_tightship_has_a_code_that_says_nothing_of_the_model() -> None:
    code = (
        "import sys, tightship_start\n"
        "from tightship.cli import verify_command\n"
        "del verify_command.run\n"
        "sys.exit(tightship_start.command_line())"
    )
    command = [sys.executable, "-c", code, "verify", "plan.csv"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 70
    assert "ImportError" in done.stderr


LACKING = (
    "MemoryError()", "MemoryError('std::bad_alloc')", "OSError(12, 'Cannot allocate memory')",
    "SystemError('error return without exception set')", 'RuntimeError("can\'t start new thread")',
    "ImportError('all about it.\\n\\nlibm.so.6: failed to map segment from shared object\\n')",
)  # fmt: skip


@pytest.mark.parametrize("error", LACKING)
@pytest.mark.parametrize("when", ["importing", "running"])
def test_a_lack_of_memory_is_one_line_and_a_code_of_its_own(error, when) -> None:
    raising = f"def fail(*_): raise {error}\n"
    before = {
        "importing": "import types; sys.meta_path.insert(0, types.SimpleNamespace(find_spec=fail))",
        "running": "from tightship.cli import verify_command; verify_command.run = fail",
    }
    code = (
        f"import sys, tightship_start\n{raising}{before[when]}\n"
        "sys.exit(tightship_start.command_line())"
    )
    command = [sys.executable, "-c", code, "verify", "plan.csv"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert done.stderr.startswith("tightship: ")
    assert "memory" in done.stderr
    assert done.stderr.count("\n") == 1
    assert "bad_alloc" not in done.stderr


def test_an_unknown_command_gets_the_list_of_commands() -> None:
    done = subprocess.run(COMMAND.split(), capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (2, "")
    assert "show the memory of a model, without loading it" in done.stderr
    wrong = [*COMMAND.split(), "plan", "--wrong", "x.csv"]
    done = subprocess.run(wrong, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "usage: tightship plan" in done.stderr
    assert "unrecognized arguments: --wrong" in done.stderr


@pytest.mark.parametrize("terminal", ["dumb", "xterm"])
def test_a_dumb_terminal_gets_no_escape_sequences(terminal, tmp_path) -> None:
    (tmp_path / "plan.csv").write_text("id,lower,upper,size\na,0,3,4\n")
    ours, theirs = os.openpty()
    code = "import sys; from tightship.cli.output import wants_bold; sys.exit(wants_bold())"
    environment = {**os.environ, "TERM": terminal, "NO_COLOR": ""}
    done = subprocess.run(
        [sys.executable, "-c", code], stdout=theirs, env=environment, check=False
    )  # fmt: skip
    os.close(ours)
    os.close(theirs)
    assert done.returncode == (terminal == "xterm")


ADVICE = """
import sys
import tightship_start
try:
    tightship_start.command_line()
except SystemExit:
    pass
from numpy._core.multiarray import _get_madvise_hugepage
sys.stderr.write(str(_get_madvise_hugepage()))
"""


@pytest.mark.parametrize(
    ("command", "setting", "asks"),
    [("serve", None, "False"), ("serve", "1", "True"), ("plan", None, "True")],
)
def test_a_server_declines_huge_pages_unless_the_environment_asks(command, setting, asks):
    environment = {k: v for k, v in os.environ.items() if k != "NUMPY_MADVISE_HUGEPAGE"}
    if setting is not None:
        environment["NUMPY_MADVISE_HUGEPAGE"] = setting
    done = subprocess.run([sys.executable, "-c", ADVICE, command, "--help"], env=environment,
                          capture_output=True, text=True, check=True)  # fmt: skip
    assert done.stderr == asks
