"""Array whose rows are those of several arrays, one behind another, as joined requests have it."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]


class RowBlocks:
    """Arrays joined along their first axis, without a copy until one is asked for.

    A run that copies an input anyway copies from the blocks, which saves a copy of all.

    Attributes:
        shape: Shape of all together.
        dtype: Their element type.
    """

    __slots__ = ("_blocks", "_joined", "_on_read", "dtype", "shape")

    def __init__(self, blocks: Sequence[Array], on_read: Callable[[], object]) -> None:
        """Refer to the blocks.

        Args:
            blocks: Arrays of one type, and of one shape but for the first axis.
            on_read: Called once the blocks are read, after which they may change.
        """
        self._blocks: Sequence[Array] = blocks
        self._on_read = on_read
        self._joined: Array | None = None
        self.dtype = blocks[0].dtype
        self.shape = (sum(each.shape[0] for each in blocks), *blocks[0].shape[1:])

    @property
    def ndim(self) -> int:
        """Number of axes."""
        return len(self.shape)

    def copy_to(self, target: Array) -> None:
        """Copy all rows to an array of their shape."""
        if self._joined is not None:
            target[...] = self._joined
            return
        start = 0
        for each in self._blocks:
            stop = start + each.shape[0]
            target[start:stop] = each
            start = stop
        self._on_read()

    def __array__(
        self, dtype: "np.dtype[Any] | None" = None, *, copy: bool | None = None
    ) -> Array:  # NumPy calls it
        """Return all rows in one array, which is made at the first call."""
        if self._joined is None:
            self._joined = np.concatenate(self._blocks)
            self._blocks = ()
            self._on_read()
        return np.array(self._joined, dtype, copy=copy)
