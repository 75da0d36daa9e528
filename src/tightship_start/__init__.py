"""The command's first steps: all there is before the imports that take time.

It is no module of `tightship`, for importing one of those imports the rest of the package first.
"""

import os
import signal
import sys


def command_line() -> int:
    """Run one command in a process of its own.

    Returns:
        The exit code that `tightship.cli.main` says.
    """
    _end_at_interrupts()
    _open_what_is_closed()
    from tightship.cli.main import command_line

    return command_line()


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
