"""Ends a run inside of an operator that runs graphs, which may do so without end."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

_CHECKS = threading.local()


@contextmanager
def interrupted_by(check: Callable[[], None]) -> Iterator[None]:
    """Have `check`, which raises to end the run, called between runs of graphs in this thread."""
    before = getattr(_CHECKS, "check", None)
    _CHECKS.check = check
    try:
        yield
    finally:
        _CHECKS.check = before


def check_interruption() -> None:
    """Raise what the check of the run raises, if this thread runs an operator of one."""
    check: Callable[[], None] | None = getattr(_CHECKS, "check", None)
    if check is not None:
        check()
