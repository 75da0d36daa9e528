"""Rows of caches in NumPy: the rule by which they are rounded, and widened again."""

from typing import Any

import ml_dtypes
import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]
TYPES = ("float16", "bfloat16", "int8")


def stored(rows: Array, kind: str) -> Array:
    """Round float32 rows to nearest, ties to even; those of int8 get a scale behind them."""
    if kind != "int8":
        with np.errstate(over="ignore"):
            return rows.astype(np.float16 if kind == "float16" else ml_dtypes.bfloat16)
    rows = rows.astype(np.float32)
    with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
        scale = np.abs(rows).max(-1, keepdims=True) / np.float32(127)
        scale[~np.isfinite(rows).all(-1)] = np.nan
        quants = np.where(scale > 0, np.clip(np.rint(rows / scale), -127, 127), 0)
    bytes_ = np.ascontiguousarray(scale.astype(np.float32)).view(np.int8)
    return np.concatenate([quants.astype(np.int8), bytes_], -1)


def widened(array: Array, kind: str) -> Array:
    """Return stored rows as float32."""
    if kind != "int8":
        return array.astype(np.float32)
    scale = np.ascontiguousarray(array[..., -4:]).view(np.float32)
    return array[..., :-4].astype(np.float32) * scale
