"""Pools of memory that clients register: kinds, ways of access and images."""

import enum
from dataclasses import dataclass

from tightship.driver.types.request import Extent


@dataclass(frozen=True, slots=True)
class Image:
    """Hardware buffer: layers of rows of pixels at a stride.

    A BLOB has its size as width, and one row of one layer; its stride and format are ignored.

    Attributes:
        pixel_format: Number of an `AHardwareBuffer` format; 1 is R8G8B8A8.
    """

    width: int
    height: int
    layers: int
    row_stride_bytes: int
    pixel_format: int = 1


READ = 1
WRITE = 2
PAGE_BYTES = 4096
PIXEL_BYTES = {1: 4, 2: 4, 3: 3, 4: 2, 0x16: 8, 0x2B: 4, 0x38: 1, 0x39: 2, 0x3A: 4, 0x3B: 8}
"""Bytes of a pixel, by the formats of `AHardwareBuffer` that store whole pixels in a row."""


class PoolKind(enum.StrEnum):
    """Kinds of memory that the driver can decode."""

    ASHMEM = "ashmem"
    MMAP_FD = "mmap_fd"
    BLOB = "hardware_buffer_blob"
    IMAGE = "hardware_buffer"


class PoolMode(enum.IntEnum):
    """Ways in which a client asks the driver to access the bytes of a pool.

    A driver has ISOLATED if its `capabilities()` name the feature `isolated`. A dma-buf is accessed
    in one way, whichever mode is asked for.
    """

    SEALED = 0  # mapped, because seals keep the file from being shortened
    COPY = 1  # read and written by system calls, never mapped
    ISOLATED = 2  # mapped by a separate process, which a bad file may kill


class DeviceMemory(enum.Enum):
    """Ways in which the driver accesses memory that a device uses as well."""

    DMA_BUF = enum.auto()  # mapped, each access announced to the kernel


@dataclass(frozen=True, slots=True)
class Pool:
    """A registered pool, as the server maps it.

    Attributes:
        identifier: Number of the pool, unique among all connections.
        kind: A `PoolKind`, or a name that the driver does not know.
        extent: The bytes of the file that the pool covers.
        protection: READ, WRITE, both or neither.
        mode: The mode that the client asked for, or how memory of a device is accessed.
        handle: Number of the client's file.
        is_decodable: Whether the driver knows and offers the kind and the pixel format; using the
            pool fails otherwise.
        image: Rows of pixels of a hardware buffer, which is used whole; None for other kinds.
        is_steady: Whether the pool is mapped and no process can change its bytes.
    """

    identifier: int
    kind: str
    extent: Extent
    protection: int
    mode: PoolMode | DeviceMemory
    handle: int
    is_decodable: bool
    image: Image | None = None
    is_steady: bool = False

    @property
    def is_readable(self) -> bool:
        """Whether the driver may read the pool."""
        return bool(self.protection & READ)

    @property
    def is_writable(self) -> bool:
        """Whether the driver may write the pool."""
        return bool(self.protection & WRITE)


def row_bytes(image: Image) -> int:
    """Return the bytes of the pixels of a row; 0 if the format is unknown."""
    return image.width * PIXEL_BYTES.get(image.pixel_format, 0)
