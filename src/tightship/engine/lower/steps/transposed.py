"""Matrices that are the transposition of one in the file, packed from there."""

from tightship._core import MemoryDesc
from tightship.graph import Constant, Derived, DType, Mapped


def untransposed(constant: Constant, source: MemoryDesc) -> tuple[Constant, MemoryDesc]:
    """The matrix in the file that a computed one is the transposition of, as a reader sees it.

    Computing it would hold it twice while it is packed, and hide that somebody else reads it.

    Args:
        constant: Any constant.
        source: Its row-major bytes under the dimensions of whoever reads it.

    Returns:
        The two as they were, unless it is such a matrix.
    """
    stored = _stored(constant)
    if stored is None:
        return constant, source
    rows, columns = constant.shape
    steps = {columns: 1, 1: rows}
    strides = [
        1 if length == 1 else steps.get(stride, 0)
        for length, stride in zip(source.dims, source.strides, strict=True)
    ]
    if 0 in strides:
        return constant, source
    return stored, MemoryDesc(source.dims, source.dtype, strides)


def _stored(constant: Constant) -> Mapped | None:
    """What is in the file, of a matrix whose recipe is to transpose that."""
    if not isinstance(constant, Derived) or not isinstance(constant.recipe, tuple):
        return None
    if constant.recipe[:2] != ("Transpose", "") or len(constant.shape) != 2 or 1 in constant.shape:
        return None
    (stored,) = constant.sources
    swaps = dict(constant.recipe[4]).get("perm", (1, 0)) == (1, 0)
    is_float = constant.dtype is DType.FLOAT32
    return stored if swaps and is_float and isinstance(stored, Mapped) else None
