"""Pools: memory of a client, by kind, and what must hold of it."""

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
    """The pool that a call hands over.

    Args:
        call: Any.
        file: What came beside it.
        identifier: For the pool.
        features: Of the driver: `hardware_buffer` and `isolated` are optional.

    Raises:
        DriverError: INVALID_ARGUMENT; GENERAL_FAILURE for a mode that is not offered.
    """
    size_bytes = call.size_bytes
    if not 0 < size_bytes <= BYTES_MAX:
        raise invalid(f"The pool has {size_bytes} bytes; it must have 1 or more.")
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
    is_kept = file.is_write_sealed or not file.is_shrink_sealed  # else its folder is trusted
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
        raise invalid("The pool's file is no regular file and no memfd.")
    if call.size_bytes > file.size_bytes - call.offset_bytes:
        raise invalid(
            f"The pool ends at byte {call.offset_bytes + call.size_bytes} of a file of "
            f"{file.size_bytes} bytes."
        )
    if call.protection and not file.is_readable:
        raise invalid("The pool's file is not open to read.")
    if call.protection & WRITE and (not file.is_writable or file.is_write_sealed):
        raise invalid("The pool is to be written; its file is not open to write, or sealed.")


def _check_kind(call: RegisterPool) -> None:
    image = call.image
    if call.kind == PoolKind.ASHMEM and call.offset_bytes:
        raise invalid(f"`ashmem` begins at byte 0, not {call.offset_bytes}.")
    if call.kind in {PoolKind.ASHMEM, PoolKind.MMAP_FD} and image is not None:
        raise invalid(f"`{call.kind}` is no hardware buffer and is described as one.")
    if call.kind not in {PoolKind.BLOB, PoolKind.IMAGE}:
        return
    if image is None:
        raise invalid(f"`{call.kind}` comes without a description of the buffer.")
    if call.kind == PoolKind.BLOB and (image.width, image.height, image.layers) != (
        call.size_bytes,
        1,
        1,
    ):
        raise invalid("A BLOB has its size as width, and one row and one layer.")
    if min(image.width, image.height, image.layers, image.row_stride_bytes) <= 0:
        raise invalid("A hardware buffer has no pixels.")
    if call.kind == PoolKind.IMAGE and row_bytes(image) > image.row_stride_bytes:
        raise invalid(f"Rows of {row_bytes(image)} bytes are {image.row_stride_bytes} bytes apart.")
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
            raise invalid(f"A dma-buf is a hardware buffer; it cannot be `{call.kind}`.")
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
    """Check that a pool can be read, or written, by an execution.

    Raises:
        DriverError: GENERAL_FAILURE.
    """
    if not pool.is_decodable:
        raise failure(f"A pool of kind `{pool.kind}` cannot be decoded here.")
    if not (pool.is_writable if to_write else pool.is_readable):
        raise failure(f"A pool of protection {pool.protection} cannot be accessed as needed.")


def check_mapping(pool: Pool) -> None:
    """Check that a pool can be mapped as far as its description goes.

    Raises:
        DriverError: INVALID_ARGUMENT.
    """
    if not pool.is_decodable:
        raise invalid(f"A pool of kind `{pool.kind}` cannot be decoded here.")


def check_copy(pool: Pool, *, to_write: bool) -> None:
    """Check that a buffer can be copied to or from a pool.

    Raises:
        DriverError: INVALID_ARGUMENT, as `IBuffer` has it for memory that cannot be mapped.
    """
    check_mapping(pool)
    if not (pool.is_writable if to_write else pool.is_readable):
        raise invalid(f"A pool of protection {pool.protection} cannot be copied so.")
