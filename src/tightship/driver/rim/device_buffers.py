"""Memory of the driver's own buffers."""

import numpy as np

from tightship.driver.rim.mappings import Bytes
from tightship.driver.rules.status import REQUEST_ALIGNMENT_BYTES


class DeviceBuffers:
    """What each buffer holds, by token; whoever writes to one is alone with it.

    A buffer has one room as long as its size stays the same: results are written there by the
    model, and read there by the next.
    """

    def __init__(self) -> None:
        self._rooms: dict[int, Bytes] = {}

    def __getitem__(self, token: int) -> Bytes:
        """The bytes of the value that a buffer holds."""
        return self._rooms[token]

    def room(self, token: int, size_bytes: int) -> Bytes:
        """Where to write a value of this size; what was there is lost.

        Raises:
            MemoryError: The system refuses it.
        """
        held = self._rooms.get(token)
        if held is None or held.size != size_bytes:
            held = self._rooms[token] = _aligned(size_bytes)
        return held

    def drop(self, token: int) -> None:
        """Give the memory of a buffer back."""
        self._rooms.pop(token, None)


def _aligned(size_bytes: int) -> Bytes:
    """Zeros, all of them in memory; `np.zeros` would leave that to the first run."""
    whole = np.empty(size_bytes + REQUEST_ALIGNMENT_BYTES, np.uint8)
    whole[...] = 0
    start = -whole.ctypes.data % REQUEST_ALIGNMENT_BYTES
    return whole[start : start + size_bytes]
