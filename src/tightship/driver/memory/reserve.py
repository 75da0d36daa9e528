"""Memory that the work of clients leaves, with which the driver refuses, answers and goes on."""

import mmap
from collections.abc import Iterator
from contextlib import contextmanager

from tightship.errors import OutOfMemoryError

RESERVE_BYTES = 1 << 20
"""Bytes that stay free while a model is loaded or a buffer allocated; Python's heap grows by so
many at once."""


@contextmanager
def reserved() -> Iterator[None]:
    """Do work that takes memory so that `RESERVE_BYTES` are free when it ends, also if it fails.

    They are mapped meanwhile, and never written.

    Raises:
        OutOfMemoryError: The system refuses them already.
    """
    try:
        held = mmap.mmap(-1, RESERVE_BYTES, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    except OSError as error:
        raise OutOfMemoryError(
            f"The system refuses the {RESERVE_BYTES} bytes that the driver needs beside a client's "
            "models and buffers. Free some memory, or raise the process's limits.",
            requested_bytes=RESERVE_BYTES,
        ) from error
    with held:
        yield
