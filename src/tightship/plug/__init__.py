"""Our memory beneath other libraries."""

from tightship.plug import hints, numpy

__all__ = ["hints", "numpy"]
