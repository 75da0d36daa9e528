"""Runs the first steps of the command, before the imports that take time.

This is a package of its own, because importing a module of `tightship` imports that package first.
"""

import os
import signal
import sys
from errno import ENOMEM

DOES_NOT_FIT = 1
"""Exit code if the system has too little memory."""
NO_THREAD = "can't start new thread"
UNSAID = ("without setting an exception", "without exception set")
"""Messages of CPython if it had no memory to make an exception."""
UNMAPPED = ("failed to map segment", "cannot map zero-fill pages", "annot allocate memory")
"""Messages of the system's loader if it has no memory for a library."""


def command_line() -> int:
    """Run one command in a process of its own.

    Returns:
        The exit code of `tightship.cli.main`.
    """
    _end_at_interrupts()
    _open_what_is_closed()
    if sys.argv[1:2] == ["serve"]:
        _decline_huge_pages()
    if sys.argv[1:2] in (["chat"], ["generate"]):
        _decline_threads()
    try:
        from tightship.cli.main import command_line

        return command_line()
    except Exception as error:
        if not lacks_memory(error):
            raise
        sys.stderr.write(f"tightship: {memory_lacking(error)}\n")
        return DOES_NOT_FIT


def lacks_memory(error: BaseException) -> bool:
    """Whether an error means that the system lacks memory, which Python reports in many ways."""
    return (
        isinstance(error, MemoryError)
        or (isinstance(error, OSError) and error.errno == ENOMEM)
        or (isinstance(error, SystemError) and any(each in str(error) for each in UNSAID))
        or (isinstance(error, RuntimeError) and str(error) == NO_THREAD)
        or (isinstance(error, ImportError) and any(each in str(error) for each in UNMAPPED))
        or (error.__cause__ is not None and lacks_memory(error.__cause__))
    )


def memory_lacking(error: BaseException) -> str:
    """Describe such an error on one line."""
    lines = str(error).replace("std::bad_alloc", "").split("\n")
    last = next((line for line in reversed(lines) if line.strip()), "")
    return f"There is not enough memory. {last}".rstrip()


def _end_at_interrupts() -> None:
    """End the process at once on SIGINT, because native code would not notice Python's handler.

    If the parent process had SIGINT ignored, it stays ignored.
    """
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, signal.SIG_DFL)


def _decline_huge_pages() -> None:
    """Keep NumPy from asking for huge pages, unless the environment says otherwise.

    NumPy's advice for an array of 4 MiB or more stays with the heap's addresses after the array is
    freed. The kernel later fills them with whole huge pages, so a server that answers requests of
    many sizes slowly grows. NumPy reads the setting when it is imported.
    """
    os.environ.setdefault("NUMPY_MADVISE_HUGEPAGE", "0")


def _decline_threads() -> None:
    """Keep NumPy's BLAS from starting threads, unless the environment says otherwise.

    They would look for work for 30 ms of a processor each, and language models give them none.
    """
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")


def _open_what_is_closed() -> None:
    """Open closed standard streams, because the next file opened would take their number."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            file = open(os.devnull, mode, encoding="utf-8")  # noqa: SIM115 - to stay
            setattr(sys, name, file)
