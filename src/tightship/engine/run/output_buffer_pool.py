"""Pool of large output arrays, reused by later runs once callers have released them.

The C library gives memory of this size back to the system at once, and the system maps it page by
page when it is next written. A token of a language model's decoder, whose caches are outputs, takes
a tenth longer because of that.
"""

import sys
import threading
from dataclasses import dataclass, field
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]

LARGE_BYTES = 1 << 17
"""Size from which the C library maps an array on its own."""


@dataclass(slots=True, eq=False)
class OutputBufferPool:
    """Memory of one array for each large output of a model."""

    _arrays: dict[str, Array] = field(default_factory=dict)
    _choosing: threading.Lock = field(default_factory=threading.Lock)

    def array(self, name: str, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Array:
        """Return an uninitialised array for an output, used by no caller.

        A kept array that is still in use, or of another size, is dropped before a new one is made,
        so that the pool never holds two.
        """
        size_bytes = dtype.itemsize * prod(shape)
        if size_bytes < LARGE_BYTES:
            return np.empty(shape, dtype)
        with self._choosing:
            if not self._has(name, size_bytes):
                self._arrays.pop(name, None)
                self._arrays[name] = np.empty(size_bytes, np.uint8)
            return self._arrays[name].view(dtype).reshape(shape)

    def _has(self, name: str, size_bytes: int) -> bool:
        found = name in self._arrays and _references(self._arrays, name) == UNUSED
        return found and self._arrays[name].nbytes == size_bytes

    def release(self) -> None:
        """Drop all arrays; those that a caller uses live on."""
        with self._choosing:
            self._arrays.clear()


def _references(arrays: dict[str, Array], name: str) -> int:
    """Count the references to an array; each view or slice of it holds one."""
    return sys.getrefcount(arrays[name])


UNUSED = _references({"": np.empty(0)}, "")
"""Reference count of an array that only the dictionary holds."""
