"""Blocks for the engine, and what is said when the system refuses one."""

from tightship._core import Block, HostResource
from tightship.engine.schedule import ALIGNMENT
from tightship.errors import OutOfMemoryError


def allocate(resource: HostResource, size_bytes: int, what: str) -> Block:
    """A block from `resource`.

    Raises:
        OutOfMemoryError: The system refuses.
    """
    try:
        return resource.allocate_block(size_bytes, ALIGNMENT)
    except MemoryError:
        raise OutOfMemoryError(
            f"Cannot allocate {size_bytes} bytes for {what}: the system refuses. "
            "Lower the batch, or raise the process's memory limit.",
            requested_bytes=size_bytes,
        ) from None
