"""Pools of memory that clients register: their kinds, how they are accessed, and their images."""

import enum
from dataclasses import dataclass

from tightship.driver.types.request import Extent


@dataclass(frozen=True, slots=True)
class Image:
    """A hardware buffer: layers of rows of pixels, one after another, a stride apart.

    A BLOB has its size as width, and one row of one layer; its stride and format say nothing.

    Attributes:
        pixel_format: As `AHardwareBuffer` numbers them; 1 is R8G8B8A8.
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
"""Of the formats of `AHardwareBuffer` whose pixels lie one after another."""


class PoolKind(enum.StrEnum):
    """The kinds of memory that have a meaning."""

    ASHMEM = "ashmem"
    MMAP_FD = "mmap_fd"
    BLOB = "hardware_buffer_blob"
    IMAGE = "hardware_buffer"


class PoolMode(enum.IntEnum):
    """How a client asks the driver to access the bytes of a pool.

    A driver has ISOLATED if its `capabilities()` name the feature `isolated`. A dma-buf is accessed
    in one way, whichever mode is asked for.
    """

    SEALED = 0  # mapped: nobody can shorten the file
    COPY = 1  # read and written by system calls, never mapped
    ISOLATED = 2  # mapped by a process that may die of it


class DeviceMemory(enum.Enum):
    """How the driver accesses memory that a device uses as well."""

    DMA_BUF = enum.auto()  # mapped, each access announced to the kernel


@dataclass(frozen=True, slots=True)
class Pool:
    """A registered pool, as the rim needs it.

    Attributes:
        identifier: On every connection different.
        mode: What the client asked for, unless it is memory of a device.
        handle: The file.
        is_decodable: False where the kind or the pixels are not known, or not offered; it fails
            where it is used.
        image: The rows of a kind that is used whole.
        is_steady: It is mapped, and nobody changes its bytes.
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
        """Whether the driver may read it."""
        return bool(self.protection & READ)

    @property
    def is_writable(self) -> bool:
        """Whether the driver may write it."""
        return bool(self.protection & WRITE)


def row_bytes(image: Image) -> int:
    """Bytes of the pixels of a row; 0 if the format is not known."""
    return image.width * PIXEL_BYTES.get(image.pixel_format, 0)
