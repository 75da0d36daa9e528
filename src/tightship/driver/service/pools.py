"""Checks of pools, by their kind."""

from collections.abc import Container

from tightship.driver.protocol.messages import RegisterPool
from tightship.driver.types.attachment import Attachment
from tightship.driver.types.operand_type import BYTES_MAX
from tightship.driver.types.pools import (
    PAGE_BYTES,
    PIXEL_BYTES,
    READ,
    WRITE,
    DeviceMemory,
    Pool,
    PoolKind,
    PoolMode,
    row_bytes,
)
from tightship.driver.types.request import Extent
from tightship.driver.types.status import failure, invalid


def check_pool(
    call: RegisterPool, file: Attachment, identifier: int, features: Container[str]
) -> Pool:
    """Check a call and return the pool it registers.

    Args:
        call: Call as received.
        file: File beside it.
        identifier: Identifier for the pool.
        features: Features of the driver; `hardware_buffer` and `isolated` are optional.

    Raises:
        DriverError: INVALID_ARGUMENT; GENERAL_FAILURE for a mode that is not offered.
    """
    size_bytes = call.size_bytes
    if not 0 < size_bytes <= BYTES_MAX:
        raise invalid(f"The pool has {size_bytes} bytes; it must have at least 1.")
    if call.protection & ~(READ | WRITE):
        raise invalid(f"The pool has protection {call.protection}; it is 0 to {READ | WRITE}.")
    if call.offset_bytes < 0 or call.offset_bytes % PAGE_BYTES:
        raise invalid(
            f"The pool begins at byte {call.offset_bytes}; it must be a multiple of {PAGE_BYTES}."
        )
    _check_file(call, file)
    _check_kind(call)
    is_decodable = _is_decodable(call, features)
    image = call.image if call.kind == PoolKind.IMAGE else None
    content_bytes = 0
    if image is not None and is_decodable:
        content_bytes = row_bytes(image) * image.height * image.layers
    extent = Extent(file.identity, call.offset_bytes, size_bytes, image is not None, content_bytes)
    mode = _checked_mode(call, file, features)
    # A pool in mode SEALED whose file can shrink is in a trusted folder.
    is_kept = file.is_write_sealed or not file.is_shrink_sealed
    return Pool(
        identifier,
        call.kind,
        extent,
        call.protection,
        mode,
        file.handle,
        is_decodable,
        image,
        is_steady=mode is PoolMode.SEALED and is_kept,
    )


def _is_decodable(call: RegisterPool, features: Container[str]) -> bool:
    if call.kind != PoolKind.IMAGE:
        return call.kind in set(PoolKind)
    assert call.image is not None
    return call.kind in features and call.image.pixel_format in PIXEL_BYTES


def _check_file(call: RegisterPool, file: Attachment) -> None:
    if not file.is_regular:
        raise invalid("The pool's file must be a regular file or a memfd.")
    if call.size_bytes > file.size_bytes - call.offset_bytes:
        raise invalid(
            f"The pool ends at byte {call.offset_bytes + call.size_bytes} of a file of "
            f"{file.size_bytes} bytes."
        )
    if call.protection and not file.is_readable:
        raise invalid("The pool's file is not open to read.")
    if call.protection & WRITE and (not file.is_writable or file.is_write_sealed):
        raise invalid("The pool is writable; its file must be open to write and not sealed.")


def _check_kind(call: RegisterPool) -> None:
    image = call.image
    if call.kind == PoolKind.ASHMEM and call.offset_bytes:
        raise invalid(f"`ashmem` must begin at byte 0, not {call.offset_bytes}.")
    if call.kind in {PoolKind.ASHMEM, PoolKind.MMAP_FD} and image is not None:
        raise invalid(f"`{call.kind}` is not a hardware buffer; it takes no image.")
    if call.kind not in {PoolKind.BLOB, PoolKind.IMAGE}:
        return
    if image is None:
        raise invalid(f"`{call.kind}` needs an image that describes the buffer.")
    if call.kind == PoolKind.BLOB and (image.width, image.height, image.layers) != (
        call.size_bytes,
        1,
        1,
    ):
        raise invalid("The image of a BLOB needs its size as width, one row and one layer.")
    if min(image.width, image.height, image.layers, image.row_stride_bytes) <= 0:
        raise invalid("Width, height, layers and stride of a hardware buffer must be above 0.")
    if call.kind == PoolKind.IMAGE and row_bytes(image) > image.row_stride_bytes:
        raise invalid(
            f"The stride is {image.row_stride_bytes} bytes; rows have {row_bytes(image)} bytes."
        )
    if image.row_stride_bytes * image.height * image.layers > call.size_bytes:
        raise invalid(
            f"The hardware buffer takes {image.row_stride_bytes * image.height * image.layers} "
            f"bytes of a pool of {call.size_bytes}."
        )


def _checked_mode(
    call: RegisterPool, file: Attachment, features: Container[str]
) -> PoolMode | DeviceMemory:
    if file.is_dma_buf:
        if call.kind not in {PoolKind.BLOB, PoolKind.IMAGE}:
            raise invalid(f"The kind of a dma-buf must be a hardware buffer, not `{call.kind}`.")
        return DeviceMemory.DMA_BUF
    if not PoolMode.SEALED <= call.mode <= PoolMode.ISOLATED:
        raise invalid(f"The pool has mode {call.mode}; modes are 0 to {PoolMode.ISOLATED.value}.")
    mode = PoolMode(call.mode)
    is_trusted = file.is_trusted and call.kind != PoolKind.ASHMEM and not call.protection & WRITE
    is_safe = file.is_shrink_sealed or is_trusted
    if not is_safe and (mode is PoolMode.SEALED or call.kind == PoolKind.ASHMEM):
        raise invalid(
            "The pool's file could be shortened while it is mapped. Seal it with F_SEAL_SHRINK, "
            "or register it as `mmap_fd` in mode COPY or ISOLATED."
        )
    if mode is PoolMode.ISOLATED and "isolated" not in features:
        raise failure("This driver has no isolated workers; use mode COPY.")
    return mode


def check_use(pool: Pool, *, to_write: bool) -> None:
    """Check that an execution can read, or write, a pool.

    Raises:
        DriverError: GENERAL_FAILURE.
    """
    if not pool.is_decodable:
        raise failure(f"This driver cannot decode a pool of kind `{pool.kind}`.")
    if not (pool.is_writable if to_write else pool.is_readable):
        use = "written" if to_write else "read"
        raise failure(f"A pool with protection {pool.protection} cannot be {use}.")


def check_mapping(pool: Pool) -> None:
    """Check that the kind of a pool can be mapped.

    Raises:
        DriverError: INVALID_ARGUMENT.
    """
    if not pool.is_decodable:
        raise invalid(f"This driver cannot decode a pool of kind `{pool.kind}`.")


def check_copy(pool: Pool, *, to_write: bool) -> None:
    """Check that a buffer can be copied to or from a pool.

    Raises:
        DriverError: INVALID_ARGUMENT, which `IBuffer` requires for memory that cannot be mapped.
    """
    check_mapping(pool)
    if not (pool.is_writable if to_write else pool.is_readable):
        use = "written" if to_write else "read"
        raise invalid(f"A pool with protection {pool.protection} cannot be {use}.")
