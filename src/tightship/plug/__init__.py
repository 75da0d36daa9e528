"""Lets other libraries allocate from Tightship's memory resources."""

from tightship.plug import cupy, hints, numpy, torch

__all__ = ["cupy", "hints", "numpy", "torch"]
