"""Lets a run be ended inside an operator that runs graphs, such as an endless loop."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

_CHECKS = threading.local()


@contextmanager
def interrupted_by(check: Callable[[], None]) -> Iterator[None]:
    """Call `check`, which raises to end the run, between runs of graphs in this thread."""
    before = getattr(_CHECKS, "check", None)
    _CHECKS.check = check
    try:
        yield
    finally:
        _CHECKS.check = before


def check_interruption() -> None:
    """Call the check that `interrupted_by` set in this thread, if any."""
    check: Callable[[], None] | None = getattr(_CHECKS, "check", None)
    if check is not None:
        check()
