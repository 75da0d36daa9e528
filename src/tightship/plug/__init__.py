"""Our memory beneath other libraries."""

from tightship.plug import numpy

__all__ = ["numpy"]
