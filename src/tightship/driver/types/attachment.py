"""What the rim knows of a file that came beside a message."""

import enum
from dataclasses import dataclass


class FenceState(enum.Enum):
    """What a fence says when it arrives."""

    PENDING = "pending"
    SIGNALLED = "signalled"
    ERROR = "error"


@dataclass(frozen=True, slots=True)
class Attachment:
    """A file, as asked of the kernel when it came.

    Attributes:
        handle: Number by which the rim knows it; closed once, by a `CloseFile` or a `DropPool`.
        size_bytes: Of the file.
        identity: Device and inode.
        is_regular: A file, memfd or dma-buf that can be mapped, owned by the client's user or open
            to it.
        is_readable, is_writable: By its access mode.
        is_shrink_sealed: It can never become shorter, and its pages are of ordinary memory: none
            is refused when it is touched.
        is_write_sealed: Nobody can map it to write any more.
        is_dma_buf: Memory that a device may use as well; its size is fixed.
        is_trusted: Lies under a folder that the driver owns, where nobody else writes. Reading it
            where it is mapped is safe; writing might find no room.
        fence: None if it is no fence.
    """

    handle: int
    size_bytes: int = 0
    identity: tuple[int, int] = (0, 0)
    is_regular: bool = True
    is_readable: bool = True
    is_writable: bool = True
    is_shrink_sealed: bool = False
    is_write_sealed: bool = False
    is_dma_buf: bool = False
    is_trusted: bool = False
    fence: FenceState | None = None
