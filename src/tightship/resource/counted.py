"""Counts the requests of a resource within a `with` statement."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from tightship._core import ResourceCounters, StatisticsResource


@contextmanager
def counted(resource: StatisticsResource) -> Iterator[Callable[[], ResourceCounters]]:
    """Count within the statement only; statements nest.

    Yields:
        Function that returns the counters: within the statement those so far, after it the final
            ones.

    Raises:
        InputError: A scope that began within the statement was not ended there.
    """
    depth = resource.push()
    final: list[ResourceCounters] = []
    try:
        yield lambda: final[0] if final else resource.counters()
    finally:
        final.append(resource.pop(depth))
