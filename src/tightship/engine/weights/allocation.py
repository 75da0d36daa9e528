"""Allocates memory for the engine, with an error that says what it was for."""

from collections.abc import Callable
from resource import RLIM_INFINITY, RLIMIT_AS, getrlimit

from tightship._core import Block, CommittedRange, HostResource
from tightship.engine.program.schedule import ALIGNMENT
from tightship.errors import OutOfMemoryError


def allocate(resource: HostResource, size_bytes: int, what: str) -> Block:
    """Allocate `size_bytes` for `what`.

    Raises:
        OutOfMemoryError: The system refuses.
    """
    try:
        return resource.allocate_block(size_bytes, ALIGNMENT)
    except MemoryError:
        raise _refused(size_bytes, what) from None


def ranged(
    make: Callable[[int], CommittedRange], capacity_bytes: int, size_bytes: int
) -> CommittedRange:
    """Make a range with `size_bytes` backed and, if possible, `capacity_bytes` of addresses.

    Raises:
        OutOfMemoryError: The system refuses.
    """
    if _addresses_are_limited():
        capacity_bytes = size_bytes
    for addresses_bytes in dict.fromkeys((capacity_bytes, size_bytes)):
        try:
            memory = make(addresses_bytes)
        except MemoryError:
            continue
        return backed(memory, size_bytes)
    raise _refused(size_bytes, "an arena")


def backed(memory: CommittedRange, size_bytes: int) -> CommittedRange:
    """Back the first `size_bytes` of a range, and return it.

    Raises:
        OutOfMemoryError: The system refuses; the range is unchanged.
    """
    if not memory.resize(size_bytes):
        raise _refused(size_bytes, "an arena")
    return memory


def _addresses_are_limited() -> bool:
    return getrlimit(RLIMIT_AS)[0] != RLIM_INFINITY


def _refused(size_bytes: int, what: str) -> OutOfMemoryError:
    return OutOfMemoryError(
        f"Cannot allocate {size_bytes} bytes for {what}: the system refuses. "
        "Lower the batch, or raise the process's memory limit.",
        requested_bytes=size_bytes,
    )
