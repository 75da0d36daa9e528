"""Our memory beneath CuPy."""

from collections.abc import Callable
from typing import Any

from tightship import _core
from tightship.errors import LibraryError, OutOfMemoryError
from tightship.plug import pools


def allocator(
    stream: int = 0,
    *,
    page_bytes: int = pools.PAGE_BYTES,
    max_bytes: int | None = None,
    driver_library: str | None = None,
) -> Callable[[int], Any]:
    """A function for `cupy.cuda.set_allocator`: one pool for each device.

    CuPy does not say on which stream memory is used. `stream` is the pointer of the only one that
    uses it, which gets it back at once; 0 stands for every stream that waits for the default one,
    as all do that were not made `non_blocking`: memory is handed out again when these are done.

    Raises:
        LibraryError: CuPy is not installed.
        InputError: The pools have blocks in use, by other settings.
    """
    try:
        from cupy.cuda import memory
    except ImportError:
        raise LibraryError("`cupy` is needed and not installed: install CuPy.") from None
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
                f"Cannot allocate {size_bytes} bytes of the CUDA device: it has no more. Give "
                "arrays back, or ask for less.",
                requested_bytes=size_bytes,
            )
        return pointer

    return allocate
