"""The pools of CUDA memory that frameworks are given: one for each device of the process."""

import ctypes

from tightship import _core

PAGE_BYTES = 2 << 20


def configure(
    *, page_bytes: int = PAGE_BYTES, max_bytes: int | None = None, driver_library: str | None = None
) -> None:
    """Settings of all pools, before a block of theirs is in use.

    Raises:
        InputError: Blocks are in use by other settings, or one of these cannot be.
    """
    _core.configure_cuda_pools(
        page_bytes=page_bytes, max_bytes=max_bytes, driver_library=driver_library
    )


def statistics(device: int) -> dict[str, int]:
    """What a device's pool holds and did, by PyTorch's names.

    Raises:
        LibraryError: There is no driver, or no such device.
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
    """Of a function of C that the core exports."""
    address = ctypes.cast(ctypes.CDLL(_core.__file__)[name], ctypes.c_void_p).value
    assert address is not None
    return address
