"""Prepares a model in a process of its own, whose memory ends with it.

The reader and the packing of a model take memory that an anchor must not keep. The process ends
when its parent does, whose end closes its standard input.
"""

import os
import pickle
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tightship.cluster.node_file import Source
    from tightship.cluster.replica_memory import Shapes


def prepare_apart(source: "Source", path: Path) -> None:
    """Prepare a model into a file, in another process.

    Raises:
        TightshipError: The error of `tightship.prepare`.
        OSError: The file cannot be written, or the process ended without a result.
    """
    call_apart(_prepare, source.path, str(path), source.shapes, source.threads)


def call_apart(function: Callable[..., None], *arguments: object) -> None:
    """Call a function of a module with a few small arguments, in another process.

    The first argument is the path of the model, for the error if the process ends.

    Raises:
        TightshipError, OSError: The error of the function.
        ChildProcessError: The process ended without a result.
    """
    given = pickle.dumps((function, arguments))
    with subprocess.Popen(
        [sys.executable, "-m", __name__, given.hex()],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    ) as process:
        assert process.stdout is not None
        result = process.stdout.read()
        code = process.wait()
    if code:
        raise ChildProcessError(f"Preparing `{arguments[0]}` ended with exit code {code}.")
    error = pickle.loads(result)
    if error is not None:
        raise error


def _prepare(model: str, path: str, shapes: "Shapes | None", threads: int) -> None:
    from tightship.loading.preparing import prepare

    prepare(model, path, shapes=shapes, threads=threads)


def _main(given: str) -> None:
    """Call a function, and write the error that it ended with, or None, to the standard output."""
    threading.Thread(target=_end_with_parent, daemon=True).start()
    error: Exception | None = None
    try:
        function, arguments = pickle.loads(bytes.fromhex(given))
        function(*arguments)
    except Exception as raised:  # noqa: BLE001  the parent raises it
        error = raised
    os.write(sys.stdout.fileno(), pickle.dumps(error))


def _end_with_parent() -> None:
    os.read(sys.stdin.fileno(), 1)
    os._exit(1)


if __name__ == "__main__":
    _main(sys.argv[1])
