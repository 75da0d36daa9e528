"""Facts about a file that came beside a message."""

import enum
from dataclasses import dataclass


class FenceState(enum.Enum):
    """State of a fence at its arrival."""

    PENDING = "pending"
    SIGNALLED = "signalled"
    ERROR = "error"


@dataclass(frozen=True, slots=True)
class Attachment:
    """File beside a message, as the kernel described it on arrival.

    Attributes:
        handle: Number of the file in the server; closed once, by `CloseFile` or `DropPool`.
        size_bytes: Size of the file.
        identity: Device and inode.
        is_regular: Whether it can be mapped (a file, memfd or dma-buf) and is owned by, or open to,
            the client's user.
        is_readable, is_writable: Access mode.
        is_shrink_sealed: Whether it can never become shorter and has ordinary memory as pages, so
            that touching them cannot fail.
        is_write_sealed: Whether no process can map it for writing any more.
        is_dma_buf: Whether a device may use the memory as well; its size is fixed.
        is_trusted: Whether it lies in a folder of the driver where no other user writes. It is safe
            to read where it is mapped; writing might find no space.
        fence: State of a fence; None for other files.
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
