"""Memory of the driver's buffers."""

import mmap
from contextlib import suppress

import numpy as np

from tightship.driver.memory.mappings import Array, Bytes
from tightship.driver.models.image_model import FIRST, LAST
from tightship.driver.types.dimensions import Dimensions
from tightship.driver.types.status import REQUEST_ALIGNMENT_BYTES

MAPPED_BYTES = 1 << 20
"""Size from which a buffer has a mapping of its own; the number of mappings is limited."""


class DeviceBuffers:
    """Contents of each buffer, by token. A writer must be the only user of its buffer.

    The memory of a buffer stays while its size does: one model writes its result there and the next
    reads it. Images may be stored with channels last; clients always see channels first.

    Attributes:
        reordered_count: Number of values that were converted between the two orders of axes.
    """

    def __init__(self) -> None:
        self._rooms: dict[int, Bytes] = {}
        self._images: set[int] = set()
        self.reordered_count = 0

    def __getitem__(self, token: int) -> Bytes:
        """Return the bytes of a buffer in their stored order."""
        return self._rooms[token]

    def have_channels_last(self, token: int) -> None:
        """Store a float32 image with channels last from now on."""
        self._images.add(token)

    def room(self, token: int, size_bytes: int) -> Bytes:
        """Return memory for a value of this size; the old value is lost.

        Raises:
            MemoryError, OSError: The system lacks memory.
        """
        held = self._rooms.get(token)
        if held is None or held.size != size_bytes:
            held = self._rooms[token] = _aligned(size_bytes)
        return held

    def seen(self, token: int, elements: Array, dimensions: Dimensions) -> Array:
        """Return a view of a buffer's elements, with strides, under the dimensions of its value."""
        if token not in self._images:
            return elements.reshape(dimensions)
        return elements.reshape([dimensions[axis] for axis in LAST]).transpose(FIRST)

    def fill(self, token: int, data: Bytes, dimensions: Dimensions) -> None:
        """Store a value from a client.

        Raises:
            MemoryError, OSError: The system lacks memory.
        """
        room = self.room(token, data.size)
        if token in self._images:
            self.reordered_count += 1
            self.seen(token, room.view("f4"), dimensions)[...] = data.view("f4").reshape(dimensions)
        else:
            room[...] = data

    def copy(self, token: int, source: int, dimensions: Dimensions) -> None:
        """Copy a value from another buffer and convert the order of axes if they differ.

        Raises:
            MemoryError, OSError: The system lacks memory.
        """
        held = self._rooms[source]
        room = self.room(token, held.size)
        if (token in self._images) == (source in self._images):
            room[...] = held
        else:
            self.reordered_count += 1
            elements = [
                self.seen(*each, dimensions)
                for each in ((token, room.view("f4")), (source, held.view("f4")))
            ]
            elements[0][...] = elements[1]

    def content(self, token: int, dimensions: Dimensions) -> Bytes:
        """Return the bytes of a value in a client's order of axes."""
        held = self._rooms[token]
        if token not in self._images:
            return held
        self.reordered_count += 1
        found = np.ascontiguousarray(self.seen(token, held.view("f4"), dimensions))
        return found.reshape(-1).view(np.uint8)

    def drop(self, token: int) -> None:
        """Free the memory of a buffer."""
        self._rooms.pop(token, None)
        self._images.discard(token)


def _aligned(size_bytes: int) -> Bytes:
    """Allocate zeros that are resident, unlike those of `np.zeros`, so that no run waits for pages.

    Large ones are mappings, which return to the system at once; `malloc` might keep them.
    """
    if size_bytes >= MAPPED_BYTES:
        mapping = mmap.mmap(-1, size_bytes, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
        with suppress(OSError):  # the kernel may lack huge pages
            mapping.madvise(mmap.MADV_HUGEPAGE)
        room = np.frombuffer(mapping, np.uint8)
    else:
        whole = np.empty(size_bytes + REQUEST_ALIGNMENT_BYTES, np.uint8)
        start = -whole.ctypes.data % REQUEST_ALIGNMENT_BYTES
        room = whole[start : start + size_bytes]
    room[...] = 0
    return room
