"""Constants that are made of a mapped file's bytes a few rows at a time."""

from collections.abc import Callable, Hashable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tightship.graph.constant import Array, Computed, Constant, Mapped
from tightship.graph.layout import DType

PIECE_BYTES = 1 << 18
"""Approximate bytes of a file that are held at once."""

Bytes = NDArray[np.uint8]


@dataclass(frozen=True, slots=True, eq=False)
class RowByRow(Computed):
    """Constant each of whose rows a function makes of a row of bytes.

    Attributes:
        dtype: Type of its elements.
        shape: Rows, and elements of a row.
        stored: Bytes of the file, [rows, bytes of a row].
        convert: Makes elements [count, ...] of bytes [count, bytes of a row].
        recipe: Key of the function.
        made: All elements in a file that was made of them once; None if there is none.
    """

    dtype: DType
    shape: tuple[int, ...]
    stored: Mapped
    convert: Callable[[Bytes], Array]
    recipe: Hashable
    made: Mapped | None = None

    @property
    def sources(self) -> tuple[Constant, ...]:
        """Bytes that it is made of."""
        return (self.stored,)

    def array(self) -> Array:
        """Return the elements, read-only."""
        found = np.empty(self.shape, self.dtype.numpy)
        for start, part in self.pieces():
            found[start : start + len(part)] = part
        found.flags.writeable = False
        return found

    def pieces(self) -> Iterator[tuple[int, Array]]:
        """Yield the first row and the elements of some rows after another."""
        rows, row_bytes = self.stored.shape
        step = max(PIECE_BYTES // max(row_bytes, 1), 1)
        room = np.empty((min(step, rows), row_bytes), np.uint8)
        for start in range(0, rows, step):
            raw = room[: rows - start]
            offset = self.stored.offset_bytes + start * row_bytes
            self.stored.file.read_into(offset, raw.reshape(-1).data)
            yield start, self.convert(raw)

    def with_made(self, made: Mapped) -> "RowByRow":
        """Return the constant with all elements in a file that was made of them."""
        return RowByRow(self.dtype, self.shape, self.stored, self.convert, self.recipe, made)

    def release(self) -> None:
        """Give back the pages of the file."""
        self.stored.release()
