"""Scratch memory, laid out while a kernel is made and granted while it runs."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import DTypeLike

from tightship.engine.kernels.kernel import Array
from tightship.graph import element_count

ALIGNMENT_BYTES = 64


@dataclass(frozen=True, slots=True)
class Slot:
    """Dense array at a fixed offset of a kernel's scratch."""

    offset_bytes: int
    dtype: np.dtype[np.generic]
    shape: tuple[int, ...]

    @property
    def size_bytes(self) -> int:
        """Bytes of the array."""
        return element_count(self.shape) * self.dtype.itemsize

    def of(self, scratch: Array | None) -> Array:
        """Return the array in the scratch of this run; its content is arbitrary."""
        if scratch is None:
            assert self.size_bytes == 0, self
            return np.empty(self.shape, self.dtype)
        raw = scratch[self.offset_bytes : self.offset_bytes + self.size_bytes]
        return raw.view(self.dtype).reshape(self.shape)


class ScratchLayout:
    """Layout of one kernel's scratch: slots one after another at 64-byte boundaries."""

    def __init__(self) -> None:
        self.size_bytes = 0

    def slot(self, dtype: DTypeLike, shape: Sequence[int]) -> Slot:
        """Reserve an array, which lives as long as the kernel runs."""
        start = -(-self.size_bytes // ALIGNMENT_BYTES) * ALIGNMENT_BYTES
        slot = Slot(start, np.dtype(dtype), tuple(shape))
        self.size_bytes = start + slot.size_bytes
        return slot
