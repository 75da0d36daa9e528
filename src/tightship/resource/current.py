"""Current resource of the process, and what RMM's users expect around it."""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Lock

from tightship._core import (
    HostResource,
    LimitingResource,
    MemoryResource,
    ResourceCounters,
    StatisticsResource,
    TracingResource,
)
from tightship.errors import InputError, InputTypeError
from tightship.public_calls import public_call
from tightship.resource.counted import counted
from tightship.resource.places import main_memory
from tightship.resource.pool import pool as pool_over

_LOCK = Lock()
_current: list[MemoryResource] = []


def current_resource() -> MemoryResource:
    """Return the process's current resource; `main_memory()` until another is set."""
    with _LOCK:
        return _current[0] if _current else main_memory()


@public_call
def set_current_resource(resource: MemoryResource) -> None:
    """Make a resource the current one. Blocks and arrays keep the resource that they came from.

    Raises:
        InputTypeError: It is not a memory resource.
    """
    if not isinstance(resource, MemoryResource):
        raise InputTypeError(f"`resource` is {resource!r}; give a memory resource.")
    with _LOCK:
        _current[:] = [resource]


@public_call
def reinitialize(
    *,
    pool: bool = False,
    initial_bytes: int | str = 0,
    max_bytes: int | str | None = None,
    statistics: bool = False,
    log: str | os.PathLike[str] | None = None,
) -> MemoryResource:
    """Make a new stack the current resource, and return it.

    What lives of the old one stays valid, and keeps it alive.

    Args:
        pool: Keep what is freed, in a pool over pages of the system; else pages go back at once.
        initial_bytes: Bytes that a pool obtains now.
        max_bytes: Most bytes at a time; None for no limit.
        statistics: Count requests, for `counters()`.
        log: File for a line of each request, as the RAPIDS Memory Manager writes it.

    Raises:
        InputError: An amount is invalid, or is for a pool and there is none.
        OutOfMemoryError: The system lacks the initial bytes.
        OSError: The log cannot be written.
    """
    made: MemoryResource = HostResource()
    if pool:
        made = pool_over(made, initial_bytes=initial_bytes, max_bytes=max_bytes)
    elif initial_bytes:
        raise InputError(f"`initial_bytes` (= {initial_bytes}) is for a pool; give `pool=True`.")
    elif max_bytes is not None:
        made = LimitingResource(made, max_bytes)
    if statistics:
        made = StatisticsResource(made)
    if log is not None:
        made = TracingResource(made, os.fspath(log))
    set_current_resource(made)
    return made


@contextmanager
def statistics() -> Iterator[Callable[[], ResourceCounters]]:
    """Count what is allocated from the current resource within the statement; statements nest.

    If the current resource does not count, one that does is current within the statement. Requests
    through references to the old one are then not counted.

    Yields:
        Function that returns the counters: those so far, after the statement the final ones.
    """
    before = current_resource()
    counting = before if isinstance(before, StatisticsResource) else StatisticsResource(before)
    set_current_resource(counting)
    try:
        with counted(counting) as now:
            yield now
    finally:
        with _LOCK:
            # Another that was set within the statement stays.
            if counting is not before and _current and _current[0] is counting:
                _current[:] = [before]
