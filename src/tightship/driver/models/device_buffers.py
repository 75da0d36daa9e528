"""Memory of the driver's own buffers."""

import mmap
from contextlib import suppress

import numpy as np

from tightship.driver.memory.mappings import Array, Bytes
from tightship.driver.models.image_model import FIRST, LAST
from tightship.driver.types.dimensions import Dimensions
from tightship.driver.types.status import REQUEST_ALIGNMENT_BYTES

MAPPED_BYTES = 1 << 20
"""From which size on a buffer is a mapping of its own; a process may have only so many."""


class DeviceBuffers:
    """What each buffer holds, by token; whoever writes to one is alone with it.

    A buffer has one room as long as its size stays the same: results are written there by the
    model, and read there by the next. An image's may have channels last; only what comes from a
    client and goes to it has them first.

    Attributes:
        reordered_count: How often a value was brought from one order of axes to the other.
    """

    def __init__(self) -> None:
        self._rooms: dict[int, Bytes] = {}
        self._images: set[int] = set()
        self.reordered_count = 0

    def __getitem__(self, token: int) -> Bytes:
        """The bytes of the value that a buffer holds, as they lie."""
        return self._rooms[token]

    def have_channels_last(self, token: int) -> None:
        """From now on, keep an image of float32 so."""
        self._images.add(token)

    def room(self, token: int, size_bytes: int) -> Bytes:
        """Where to write a value of this size; what was there is lost.

        Raises:
            MemoryError, OSError: The system refuses it.
        """
        held = self._rooms.get(token)
        if held is None or held.size != size_bytes:
            held = self._rooms[token] = _aligned(size_bytes)
        return held

    def seen(self, token: int, elements: Array, dimensions: Dimensions) -> Array:
        """The elements of a buffer under the dimensions of its value: a view, with strides."""
        if token not in self._images:
            return elements.reshape(dimensions)
        return elements.reshape([dimensions[axis] for axis in LAST]).transpose(FIRST)

    def fill(self, token: int, data: Bytes, dimensions: Dimensions) -> None:
        """Take a value over from a client.

        Raises:
            MemoryError, OSError: The system refuses room for it.
        """
        room = self.room(token, data.size)
        if token in self._images:
            self.reordered_count += 1
            self.seen(token, room.view("f4"), dimensions)[...] = data.view("f4").reshape(dimensions)
        else:
            room[...] = data

    def copy(self, token: int, source: int, dimensions: Dimensions) -> None:
        """Take a value over from another buffer, each in its own order of axes.

        Raises:
            MemoryError, OSError: The system refuses room for it.
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
        """The bytes of a value, as a client knows it."""
        held = self._rooms[token]
        if token not in self._images:
            return held
        self.reordered_count += 1
        found = np.ascontiguousarray(self.seen(token, held.view("f4"), dimensions))
        return found.reshape(-1).view(np.uint8)

    def drop(self, token: int) -> None:
        """Give the memory of a buffer back."""
        self._rooms.pop(token, None)
        self._images.discard(token)


def _aligned(size_bytes: int) -> Bytes:
    """Zeros, all of them in memory; `np.zeros` would leave that to the first run.

    Large ones are mappings: the system has them back as soon as they are gone, where `malloc`
    might keep them.
    """
    if size_bytes >= MAPPED_BYTES:
        mapping = mmap.mmap(-1, size_bytes, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
        with suppress(OSError):  # the system may have none
            mapping.madvise(mmap.MADV_HUGEPAGE)
        room = np.frombuffer(mapping, np.uint8)
    else:
        whole = np.empty(size_bytes + REQUEST_ALIGNMENT_BYTES, np.uint8)
        start = -whole.ctypes.data % REQUEST_ALIGNMENT_BYTES
        room = whole[start : start + size_bytes]
    room[...] = 0
    return room
