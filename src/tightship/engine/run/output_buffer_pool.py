"""Large arrays that runs wrote outputs into, for later runs once callers have let go of them.

The C library gives memory of this size back to the system at once, and the system maps it page by
page when it is next written: a token of a language model's decoder, whose caches are outputs, takes
a tenth longer by that.
"""

import sys
import threading
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]

LARGE_BYTES = 1 << 17
"""From which on the C library maps memory for an array alone."""


@dataclass(slots=True, eq=False)
class OutputBufferPool:
    """One array for each large output; of a model whose shapes never change."""

    _arrays: dict[str, Array] = field(default_factory=dict)
    _choosing: threading.Lock = field(default_factory=threading.Lock)

    def array(self, name: str, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Array:
        """An array, not initialised, for an output; nobody else holds its memory.

        What is kept is let go before anything new is taken, so that a run never holds two.
        """
        if dtype.itemsize * int(np.prod(shape, dtype=np.int64)) < LARGE_BYTES:
            return np.empty(shape, dtype)
        with self._choosing:
            if name not in self._arrays or _references(self._arrays, name) != UNUSED:
                self._arrays.pop(name, None)
                self._arrays[name] = np.empty(shape, dtype)
            return self._arrays[name].view()

    def release(self) -> None:
        """Keep nothing; arrays that somebody reads live on."""
        with self._choosing:
            self._arrays.clear()


def _references(arrays: dict[str, Array], name: str) -> int:
    """To an array; whatever reads its memory, a view or a slice of one, holds one of them."""
    return sys.getrefcount(arrays[name])


UNUSED = _references({"": np.empty(0)}, "")
"""Of an array that only the dictionary has."""
