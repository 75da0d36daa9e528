"""Commands that a release runs, and the error that ends it."""

import os
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

LINES_MAX = 80
"""Lines of a failed command's output that are shown."""


class ReleaseError(Exception):
    """A check failed, or a command did; the message says which and what to do."""


def run(
    command: Sequence[str | Path], folder: Path, environment: Mapping[str, str] | None = None
) -> str:
    """Run a command in a folder and return what it printed.

    Args:
        command: The program and its arguments.
        folder: Where it runs.
        environment: Variables in the place of, or beside, those of this process.

    Raises:
        ReleaseError: It ended with another status than 0; its last lines go to standard error.
    """
    done = subprocess.run(
        command,
        cwd=folder,
        env={**os.environ, **(environment or {})},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        print("\n".join(done.stdout.splitlines()[-LINES_MAX:]), file=sys.stderr)
        words = " ".join(str(word) for word in command)
        raise ReleaseError(f"`{words}` ended with {done.returncode}; see above.")
    return done.stdout


def tool(name: str) -> list[str]:
    """Return the command of a Python package of `release/requirements.txt`."""
    return [sys.executable, "-m", name]


def announce(step: str) -> None:
    """Print what happens next, with the time, as steps take minutes."""
    print(f"[{time.strftime('%H:%M:%S')}] {step}", flush=True)
