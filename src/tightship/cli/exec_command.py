"""Implements `tightship exec`: runs any program under a limit, and says what it held."""

import argparse
import os
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from tightship.cli.exec_report import Ended, report
from tightship.cli.held_memory import Held, Watch
from tightship.errors import InputError
from tightship.view.text import printable

NOT_RUNNABLE = 126
NOT_FOUND = 127
BY_SIGNAL = 128
"""Exit codes of programs that could not be run or ended by a signal, as shells have them."""

FORWARDED = {
    signal.SIGHUP,
    signal.SIGINT,
    signal.SIGQUIT,
    signal.SIGTERM,
    signal.SIGUSR1,
    signal.SIGUSR2,
}


def run(options: argparse.Namespace) -> int:
    """Run a program; report what it held at the end, and return its exit code.

    Raises:
        InputError: No program is named, or the report has no folder to be written in.
    """
    program = options.program[1:] if options.program[:1] == ["--"] else options.program
    if not program:
        raise InputError("Name a program to run: `tightship exec -- python train.py`.")
    if options.output and not Path(options.output).resolve().parent.is_dir():
        raise InputError(f"The folder of `{options.output}` does not exist; name another file.")
    limit = _limit(options.max_memory)
    start = time.perf_counter()
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)  # if ignored, the exit code would be lost
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {*FORWARDED, signal.SIGCHLD})
    try:
        # The command has one thread, so a function may run in the copy of the process.
        prepare = _prepare(before, limit)
        child = subprocess.Popen(program, close_fds=False, preexec_fn=prepare)  # noqa: PLW1509
    except OSError as error:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
        return _refused(program[0], error)
    held = _watched(child)
    seconds = time.perf_counter() - start
    report(Ended(program, child.returncode, seconds, limit, held), options.output,
           is_json=options.json)  # fmt: skip
    return child.returncode if child.returncode >= 0 else BY_SIGNAL - child.returncode


def _limit(asked: int | None) -> int | None:
    """Return the limit to set: a lower one that this process already has stays."""
    hard = resource.getrlimit(resource.RLIMIT_DATA)[1]
    if asked is None or hard == resource.RLIM_INFINITY:
        return asked
    return min(asked, hard)


def _prepare(mask: set[signal.Signals | int], limit: int | None) -> Callable[[], None]:
    def prepare() -> None:
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        if limit is not None:  # the last step, as this copy of the process may be above the limit
            resource.setrlimit(resource.RLIMIT_DATA, (limit, limit))

    return prepare


def _refused(name: str, error: OSError) -> int:
    is_missing = isinstance(error, FileNotFoundError)
    why = "was not found" if is_missing else f"cannot be run: {error.strerror}"
    print(f"tightship: `{printable(name)}` {why}.", file=sys.stderr)
    return NOT_FOUND if is_missing else NOT_RUNNABLE


def _watched(child: "subprocess.Popen[bytes]") -> Held:
    """Wait until the program ends, pass signals on to it, and return what it held.

    The terminal sends its signals to the program as well, so only those of processes are passed on.
    """
    watch = Watch(child.pid)
    wanted = {*FORWARDED, signal.SIGCHLD}
    while child.poll() is None:
        due = time.perf_counter() + watch.look()
        while child.poll() is None and (left := due - time.perf_counter()) > 0:
            came = signal.sigtimedwait(wanted, left)
            if came is not None and came.si_signo in FORWARDED and came.si_code <= 0:
                with suppress(ProcessLookupError):
                    os.kill(child.pid, came.si_signo)
    most = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * 1024
    own = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    if most > own:  # else it may be that of this process, which the program was forked from
        watch.held.resident_bytes = max(watch.held.resident_bytes, most)
    return watch.held
