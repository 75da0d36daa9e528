"""Our memory beneath PyTorch on CUDA devices."""

from typing import Any

from tightship import _core
from tightship.errors import LibraryError
from tightship.plug import pools


def allocator(
    *,
    page_bytes: int = pools.PAGE_BYTES,
    max_bytes: int | None = None,
    driver_library: str | None = None,
) -> Any:  # noqa: ANN401 - a type of torch's
    """A `torch.cuda.memory.CUDAPluggableAllocator`: one pool for each device.

    Made current before torch first allocates, it serves everything; in a `MemPool`, what is made
    within `torch.cuda.use_mem_pool`. Memory comes back to the stream it was asked for on at once,
    and to others when that one is done; `Tensor.record_stream` is heeded. Where there is no memory
    torch raises RuntimeError, with the numbers. Graph capture is not served.

    Args:
        page_bytes: What is mapped and moved, a power of two and a multiple of the granularity.
        max_bytes: The most that each device's pool may hold.
        driver_library: The CUDA driver, if not the system's.

    Raises:
        LibraryError: torch is not installed, or was built without CUDA.
        InputError: The pools have blocks in use, by other settings.
    """
    memory = _torch().cuda.memory
    pools.configure(page_bytes=page_bytes, max_bytes=max_bytes, driver_library=driver_library)
    made = memory.CUDAPluggableAllocator(
        _core.__file__, "tightship_torch_allocate", "tightship_torch_deallocate"
    )
    made.allocator().set_record_stream_fn(pools.address_of("tightship_torch_record_stream"))
    return made


def memory_pool(**settings: Any) -> Any:  # noqa: ANN401 - a type of torch's
    """A `torch.cuda.MemPool` over `allocator(**settings)`, for `torch.cuda.use_mem_pool`."""
    return _torch().cuda.MemPool(allocator(**settings).allocator())


def memory_stats(device: int = 0) -> dict[str, int]:
    """What a device's pool holds and did, by torch's names. Bytes of pages are reserved ones."""
    return pools.statistics(device)


def empty_cache(device: int = 0) -> int:
    """Gives pages that nothing uses back to the device; returns their bytes."""
    return _core.trim_cuda_pool(device)


def _torch() -> Any:  # noqa: ANN401 - a module
    try:
        import torch
    except ImportError:
        raise LibraryError("`torch` is needed and not installed: install PyTorch.") from None
    if torch.version.cuda is None:
        raise LibraryError(
            f"torch {torch.__version__} was built without CUDA, which its memory is to be of: "
            "install a build with it."
        )
    return torch
