"""Controls the pools of CUDA memory that frameworks use: one for each device of the process."""

import ctypes
import os

from tightship import _core

PAGE_BYTES = 2 << 20


def configure(
    *,
    page_bytes: int | str = PAGE_BYTES,
    max_bytes: int | str | None = None,
    driver_library: str | os.PathLike[str] | None = None,
) -> None:
    """Set the options of all pools, before any of their blocks is in use.

    Args:
        page_bytes: Bytes that are mapped and moved as one, a power of two and a multiple of the
            device's granularity; `PAGE_BYTES` by default.
        max_bytes: The most that each device's pool may hold; None, the default, sets no limit.
        driver_library: Path of the CUDA driver; None, the default, takes the system's.

    Raises:
        InputError: Blocks are in use with other settings, or a setting is invalid.
    """
    _core.configure_cuda_pools(
        page_bytes=page_bytes,
        max_bytes=max_bytes,
        driver_library=None if driver_library is None else os.fspath(driver_library),
    )


def statistics(device: int) -> dict[str, int]:
    """Return the counts and bytes of a device's pool, by PyTorch's names.

    Raises:
        LibraryError: The driver is missing, or lacks the device.
    """
    now, live_count = _core.cuda_pool_statistics(device), _core.cuda_pool_live_count(device)
    return {
        "allocated_bytes.all.current": now.allocated_bytes,
        "allocated_bytes.all.peak": now.peak_allocated_bytes,
        "reserved_bytes.all.current": now.physical_bytes,
        "reserved_bytes.all.peak": now.peak_physical_bytes,
        "requested_bytes.all.current": now.requested_bytes,
        "inactive_split_bytes.all.current": now.cached_bytes,
        "allocation.all.current": live_count,
        "allocation.all.allocated": now.allocation_count,
        "allocation.all.freed": now.allocation_count - live_count,
        "num_alloc_retries": now.retry_count,
    }


def address_of(name: str) -> int:
    """Return the address of a C function that the core exports."""
    address = ctypes.cast(ctypes.CDLL(_core.__file__)[name], ctypes.c_void_p).value
    assert address is not None
    return address
