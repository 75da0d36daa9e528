"""Lets CuPy allocate from Tightship's pools."""

import os
from collections.abc import Callable
from typing import Any

from tightship import _core
from tightship.errors import LibraryError, OutOfMemoryError
from tightship.plug import pools

__all__ = ["allocator"]


def allocator(
    stream: int = 0,
    *,
    page_bytes: int | str = pools.PAGE_BYTES,
    max_bytes: int | str | None = None,
    driver_library: str | os.PathLike[str] | None = None,
) -> Callable[[int], Any]:
    """Make a function for `cupy.cuda.set_allocator`, with one pool for each device.

    CuPy does not say on which stream memory is used.

    Args:
        stream: Pointer of the only stream that uses the memory, which can reuse a freed block at
            once. 0, the default, stands for all streams that synchronize with the default stream,
            which are those not made `non_blocking`; a freed block is reused when these are done.
        page_bytes: Bytes that are mapped and moved as one, a power of two and a multiple of the
            device's granularity.
        max_bytes: The most that each device's pool may hold; None, the default, sets no limit.
        driver_library: Path of the CUDA driver; None, the default, takes the system's.

    Returns:
        A function that allocates a number of bytes; it raises `OutOfMemoryError` if the device has
            no more.

    Raises:
        LibraryError: CuPy is not installed.
        InputError: The pools have blocks in use with other settings.
    """
    try:
        from cupy.cuda import memory
    except ImportError:
        raise LibraryError("`cupy` is not installed; install CuPy.") from None
    pools.configure(page_bytes=page_bytes, max_bytes=max_bytes, driver_library=driver_library)
    functions = memory.CFunctionAllocator(
        stream,
        pools.address_of("tightship_cupy_allocate"),
        pools.address_of("tightship_cupy_deallocate"),
        _core,
    )

    def allocate(size_bytes: int) -> Any:  # noqa: ANN401 - a type of CuPy's
        pointer = functions.malloc(size_bytes)
        if size_bytes > 0 and pointer.ptr == 0:
            raise OutOfMemoryError(
                f"Cannot allocate {size_bytes} bytes on the CUDA device: it is out of memory. "
                "Release arrays, or ask for less.",
                requested_bytes=size_bytes,
            )
        return pointer

    return allocate
