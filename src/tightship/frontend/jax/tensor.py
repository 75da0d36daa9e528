"""Conversion of jax's arrays to constants; the bytes stay in jax's memory."""

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tightship.graph import Constant, DType, Inline, Mapped, MappedFile

HELD_BYTES_MAX = 512
"""Size up to which a constant is small, so that passes may read its elements."""


def constant_of(array: NDArray[Any], name: str) -> Constant:
    """Return an array as a constant that refers to its memory."""
    dense = np.ascontiguousarray(array)
    if dense.nbytes <= HELD_BYTES_MAX:
        held = dense.reshape(array.shape).copy()
        held.flags.writeable = False
        return Inline(held)
    raw = dense.reshape(-1).view(np.uint8)
    file = MappedFile.of_bytes(raw.data.toreadonly(), Path(f"<{name}>"))
    return Mapped(file, 0, DType.of(dense.dtype), array.shape)
