"""Lets PyTorch allocate CUDA memory from Tightship's pools."""

import os
from typing import Any

from tightship import _core
from tightship.errors import LibraryError
from tightship.plug import pools

__all__ = ["allocator", "empty_cache", "memory_pool", "memory_stats"]


def allocator(
    *,
    page_bytes: int | str = pools.PAGE_BYTES,
    max_bytes: int | str | None = None,
    driver_library: str | os.PathLike[str] | None = None,
) -> Any:  # noqa: ANN401 - a type of torch's
    """Make a `torch.cuda.memory.CUDAPluggableAllocator`, with one pool for each device.

    Made current before torch first allocates, it serves all allocations; in a `MemPool`, those
    within `torch.cuda.use_mem_pool`. A freed block can be reused at once on the stream that it was
    allocated on, and on other streams when that stream is done; `Tensor.record_stream` is
    respected. If memory runs out, torch raises RuntimeError with the figures. Graph capture is not
    supported.

    Args:
        page_bytes: Bytes that are mapped and moved as one, a power of two and a multiple of the
            device's granularity.
        max_bytes: The most that each device's pool may hold; None, the default, sets no limit.
        driver_library: Path of the CUDA driver; None, the default, takes the system's.

    Raises:
        LibraryError: torch is not installed, or was built without CUDA.
        InputError: The pools have blocks in use with other settings.
    """
    memory = _torch().cuda.memory
    pools.configure(page_bytes=page_bytes, max_bytes=max_bytes, driver_library=driver_library)
    made = memory.CUDAPluggableAllocator(
        _core.__file__, "tightship_torch_allocate", "tightship_torch_deallocate"
    )
    made.allocator().set_record_stream_fn(pools.address_of("tightship_torch_record_stream"))
    return made


def memory_pool(**settings: Any) -> Any:  # noqa: ANN401 - a type of torch's
    """Make a `torch.cuda.MemPool` over `allocator(**settings)`, for `torch.cuda.use_mem_pool`."""
    return _torch().cuda.MemPool(allocator(**settings).allocator())


def memory_stats(device: int = 0) -> dict[str, int]:
    """Return a device pool's figures by torch's names; bytes of pages count as reserved."""
    return pools.statistics(device)


def empty_cache(device: int = 0) -> int:
    """Return unused pages to the device, and return the number of their bytes."""
    return _core.trim_cuda_pool(device)


def _torch() -> Any:  # noqa: ANN401 - a module
    try:
        import torch
    except ImportError:
        raise LibraryError("`torch` is not installed; install PyTorch.") from None
    if torch.version.cuda is None:
        raise LibraryError(
            f"torch {torch.__version__} was built without CUDA; install a build with CUDA."
        )
    return torch
