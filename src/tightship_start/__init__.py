"""The command's first steps: all there is before the imports that take time.

It is no module of `tightship`, for importing one of those imports the rest of the package first.
"""

import os
import signal
import sys
from errno import ENOMEM

DOES_NOT_FIT = 1
"""The exit code for what the system has no memory for."""
NO_THREAD = "can't start new thread"
UNSAID = ("without setting an exception", "without exception set")
"""Of CPython, where it had no memory to make the exception."""
UNMAPPED = ("failed to map segment", "cannot map zero-fill pages", "annot allocate memory")
"""What the system's loader says of a library that there is no memory for."""


def command_line() -> int:
    """Run one command in a process of its own.

    Returns:
        The exit code that `tightship.cli.main` says.
    """
    _end_at_interrupts()
    _open_what_is_closed()
    try:
        from tightship.cli.main import command_line

        return command_line()
    except Exception as error:
        if not lacks_memory(error):
            raise
        sys.stderr.write(f"tightship: {memory_lacking(error)}\n")
        return DOES_NOT_FIT


def lacks_memory(error: BaseException) -> bool:
    """Whether something failed as the system had no memory, which Python tells in many ways."""
    return (
        isinstance(error, MemoryError)
        or (isinstance(error, OSError) and error.errno == ENOMEM)
        or (isinstance(error, SystemError) and any(each in str(error) for each in UNSAID))
        or (isinstance(error, RuntimeError) and str(error) == NO_THREAD)
        or (isinstance(error, ImportError) and any(each in str(error) for each in UNMAPPED))
        or (error.__cause__ is not None and lacks_memory(error.__cause__))
    )


def memory_lacking(error: BaseException) -> str:
    """What is said of that, on one line."""
    lines = str(error).replace("std::bad_alloc", "").split("\n")
    last = next((line for line in reversed(lines) if line.strip()), "")
    return f"There is not enough memory. {last}".rstrip()


def _end_at_interrupts() -> None:
    """At once and without a word; native code would look for none.

    Whoever has them ignored started the process so, and it stays so.
    """
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, signal.SIG_DFL)


def _open_what_is_closed() -> None:
    """Standard streams that nobody gave: else the next file opened would take their number."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            file = open(os.devnull, mode, encoding="utf-8")  # noqa: SIM115 - to stay
            setattr(sys, name, file)
