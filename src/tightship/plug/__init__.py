"""Our memory beneath other libraries."""

from tightship.plug import cupy, hints, numpy, torch

__all__ = ["cupy", "hints", "numpy", "torch"]
