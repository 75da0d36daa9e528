"""Packs transposed matrices from the file's originals."""

from tightship._core import MemoryDesc
from tightship.graph import Constant, Derived, DType, Mapped


def untransposed(constant: Constant, source: MemoryDesc) -> tuple[Constant, MemoryDesc]:
    """Return the file's matrix that a computed constant transposes, with strides to read it.

    Computing the transpose would hold it twice while it is packed, and hide that the original is
    shared.

    Args:
        constant: Any constant.
        source: Row-major layout of its bytes under the reader's dimensions.

    Returns:
        The original matrix and its layout, or the arguments if the constant is not a transpose.
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
    """Return the file's matrix, if the constant's recipe is to transpose it."""
    if not isinstance(constant, Derived) or not isinstance(constant.recipe, tuple):
        return None
    if constant.recipe[:2] != ("Transpose", "") or len(constant.shape) != 2 or 1 in constant.shape:
        return None
    (stored,) = constant.sources
    swaps = dict(constant.recipe[4]).get("perm", (1, 0)) == (1, 0)
    is_float = constant.dtype is DType.FLOAT32
    return stored if swaps and is_float and isinstance(stored, Mapped) else None
