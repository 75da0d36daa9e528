"""Memory that the work of clients leaves, with which the driver refuses, answers and goes on."""

import mmap
from collections.abc import Iterator
from contextlib import contextmanager

from tightship.errors import OutOfMemoryError

RESERVE_BYTES = 1 << 20
"""Bytes that stay free while a model is loaded or a buffer allocated; Python's heap grows by so
many at once."""
LEAST_BYTES = RESERVE_BYTES // 4
"""Bytes below which not even small things may be kept; Python's heap takes single pages then."""


def has_least() -> bool:
    """Whether the system would give this process `LEAST_BYTES` now; nothing keeps them."""
    try:
        _mapped(LEAST_BYTES).close()
    except OSError:
        return False
    return True


@contextmanager
def reserved() -> Iterator[None]:
    """Do work that takes memory so that `RESERVE_BYTES` are free when it ends, also if it fails.

    They are mapped meanwhile, and never written.

    Raises:
        OutOfMemoryError: The system refuses them already.
    """
    try:
        held = _mapped(RESERVE_BYTES)
    except OSError as error:
        raise OutOfMemoryError(
            f"The system refuses the {RESERVE_BYTES} bytes that the driver needs beside a client's "
            "models and buffers. Free some memory, or raise the process's limits.",
            requested_bytes=RESERVE_BYTES,
        ) from error
    with held:
        yield


def _mapped(size_bytes: int) -> mmap.mmap:
    """Map bytes that are not written.

    Raises:
        OSError: The system refuses them.
    """
    return mmap.mmap(-1, size_bytes, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
