"""Counts the requests of a resource within a `with` statement."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from tightship._core import ResourceCounters, StatisticsResource
from tightship.errors import InputTypeError


@contextmanager
def counted(resource: StatisticsResource) -> Iterator[Callable[[], ResourceCounters]]:
    """Count within the statement only; statements nest.

    Args:
        resource: Resource whose requests are counted.

    Yields:
        Function that returns the counters: within the statement those so far, after it the final
            ones.

    Raises:
        InputTypeError: The resource is of another kind.
        InputError: A scope that began within the statement was not ended there.
    """
    if not isinstance(resource, StatisticsResource):
        raise InputTypeError(f"`resource` is {resource!r}; give a `StatisticsResource`.")
    depth = resource.push()
    final: list[ResourceCounters] = []
    try:
        yield lambda: final[0] if final else resource.counters()
    finally:
        final.append(resource.pop(depth))
