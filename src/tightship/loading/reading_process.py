"""A process that reads and prepares a model for the one that loads it, and takes its memory along.

The modules that read a model file, and what lowering and packing leave behind, take memory that no
plan of a prepared model contains, and that a process which maps the file must not gain.
"""

import json
import os
import pickle
import select
import signal
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from fcntl import F_DUPFD_CLOEXEC, F_GETFL, F_SETFL, F_SETOWN, fcntl
from typing import TYPE_CHECKING, Any, BinaryIO, Self, TypeVar

if TYPE_CHECKING:
    import subprocess

T = TypeVar("T")

_START = (
    "import json, sys; sys.path[:] = json.loads(sys.argv[1]); "
    f"from {__name__} import serve; serve()"
)


class ReadingProcess:
    """A process for a few calls, started by the first one; the end of the `with` block ends it.

    It inherits environment, folder, limits and processors. It ends when its parent does, whose end
    closes its standard input, and gets no Ctrl-C of the terminal: the parent's interrupt ends it.
    Where none can be started (a program that embeds Python, a sandbox), calls run in this process.
    """

    def __init__(self, files: Sequence[int] = ()) -> None:
        """Create it; `files` are descriptors that the process inherits under the same numbers."""
        self._files = files
        self._process: subprocess.Popen[bytes] | None = None
        self._is_ready = self._is_impossible = False

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.end()

    def end(self) -> None:
        """End the process, if it runs; a further call starts another."""
        process, self._process, self._is_ready = self._process, None, False
        if process is not None:
            process.kill()
            process.communicate()

    def call(
        self,
        function: Callable[..., T],
        *arguments: object,
        progress: Callable[[int, int], object] | None = None,
    ) -> T:
        """Return the result of a module's function, called in the process.

        Args:
            function: Function to call.
            arguments: Its arguments, which are pickled.
            progress: If it is given, the function gets a `progress` that calls this one here.

        Raises:
            Exception: The exception of the function, or of `progress`.
            ChildProcessError: The process ended without a result.
        """
        process = self._started()
        if process is None:
            return function(*arguments, **({} if progress is None else {"progress": progress}))
        try:
            kind, value = self._answer(process, (function, arguments, progress))
        except BaseException:
            self.end()  # else a later call would read the answer to this one
            raise
        if kind == "raised":
            raise value
        return value  # type: ignore[no-any-return]

    def _answer(
        self,
        process: "subprocess.Popen[bytes]",
        call: tuple[Callable[..., object], tuple[object, ...], Callable[[int, int], object] | None],
    ) -> tuple[str, Any]:
        assert process.stdin is not None
        assert process.stdout is not None
        function, arguments, progress = call
        try:
            # A large argument is written as it is, without a copy.
            pickle.dump((function, arguments, progress is not None), process.stdin)
            process.stdin.flush()
            kind, value = pickle.load(process.stdout)
        except (EOFError, BrokenPipeError):
            raise _ended(process) from None
        while kind == "progress":
            assert progress is not None
            progress(*value)
            try:
                kind, value = pickle.load(process.stdout)
            except EOFError:
                raise _ended(process) from None
        return kind, value

    def start(self) -> None:
        """Start the process if none runs, without waiting until it has imported what it needs."""
        if self._process is None and not self._is_impossible:
            self._process = _start(self._files)
            self._is_impossible = self._process is None

    def can_answer(self) -> bool:
        """Wait for the process, which is started if none runs; return whether calls go to it."""
        return self._started() is not None

    def _started(self) -> "subprocess.Popen[bytes] | None":
        self.start()
        if self._process is not None and not self._is_ready:
            self._is_ready = _becomes_ready(self._process)
            if not self._is_ready:
                self._process, self._is_impossible = None, True
        return self._process


def _ended(process: "subprocess.Popen[bytes]") -> ChildProcessError:
    code = process.wait()
    return ChildProcessError(f"The process that prepares the model ended with exit code {code}.")


def _start(files: Sequence[int]) -> "subprocess.Popen[bytes] | None":
    """Start a process; return None if no interpreter is known, or the system refuses."""
    if not _is_interpreter(sys.executable):
        return None
    import subprocess  # only processes that prepare need it

    path = json.dumps(list(map(str, sys.path)))
    try:
        return subprocess.Popen(
            [sys.executable, "-P", "-c", _START, path],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            process_group=0,
            pass_fds=files,
        )
    except OSError:
        return None


def _becomes_ready(process: "subprocess.Popen[bytes]") -> bool:
    """Wait until a process answers; end it and return False if it cannot import this package."""
    try:
        assert process.stdout is not None
        pickle.load(process.stdout)
    except BaseException as error:
        process.kill()
        process.communicate()
        if isinstance(error, EOFError | pickle.UnpicklingError):
            return False
        raise
    return True


def _is_interpreter(path: str | None) -> bool:
    """Whether a program is Python, rather than one that embeds it."""
    return os.path.basename(path or "").startswith("python") and not hasattr(sys, "frozen")


def is_reading_process() -> bool:
    """Whether this process is one that reads for another, and so needs none of its own."""
    return _START in sys.orig_argv


def serve() -> None:
    """Answer the calls that come through the standard input, until it closes."""
    answers = os.fdopen(fcntl(1, F_DUPFD_CLOEXEC, 3), "wb")
    # Keep what a library prints out of the answers. A daemon may lack a standard error.
    os.dup2(2 if sys.stderr is not None else os.open(os.devnull, os.O_WRONLY), 1)
    _send(answers, "ready", None)
    while True:
        try:
            call = pickle.load(sys.stdin.buffer)
        except EOFError:
            return
        with _ends_with_parent(0):
            kind, value = _answer(answers, call)
        _send(answers, kind, value)


@contextmanager
def _ends_with_parent(stream: int) -> Iterator[None]:
    """Have a signal end this process when the other end of a pipe closes, whatever it is doing.

    A thread that waits for it would need a stack, which counts against a limit on data.
    """
    flags = fcntl(stream, F_GETFL)
    signal.signal(signal.SIGIO, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGIO})
    fcntl(stream, F_SETOWN, os.getpid())
    fcntl(stream, F_SETFL, flags | os.O_ASYNC)
    if select.select([stream], [], [], 0)[0]:
        os._exit(1)  # it has closed before
    try:
        yield
    finally:
        fcntl(stream, F_SETFL, flags)


def _answer(
    answers: BinaryIO, call: tuple[Callable[..., object], tuple[object, ...], bool]
) -> tuple[str, object]:
    function, arguments, tells_progress = call

    def progress(done: int, total: int) -> None:
        _send(answers, "progress", (done, total))

    try:
        result = function(*arguments, **({"progress": progress} if tells_progress else {}))
    except Exception as error:  # noqa: BLE001  the parent raises it
        return "raised", error
    return "result", result


def _send(answers: BinaryIO, kind: str, value: object) -> None:
    try:
        message = pickle.dumps((kind, value))
        pickle.loads(message)
    except Exception:  # noqa: BLE001  some exceptions cannot be pickled, or not be read
        message = pickle.dumps(("raised", RuntimeError(f"{type(value).__name__}: {value}")))
    try:
        answers.write(message)
        answers.flush()
    except BrokenPipeError:
        os._exit(1)  # the parent has ended; it hears of nothing any more
