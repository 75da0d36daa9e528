"""What a `with` statement asks of a resource."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from tightship._core import ResourceCounters, StatisticsResource


@contextmanager
def counted(resource: StatisticsResource) -> Iterator[Callable[[], ResourceCounters]]:
    """Count within the statement only; statements nest.

    Yields:
        A function that returns the counters: so far within the statement, afterwards of it.

    Raises:
        InputError: A scope that was begun within the statement was not ended there.
    """
    depth = resource.push()
    final: list[ResourceCounters] = []
    try:
        yield lambda: final[0] if final else resource.counters()
    finally:
        final.append(resource.pop(depth))
