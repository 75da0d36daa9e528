"""Reads constants whose elements follow a rule of their indices."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tightship.engine.lower.passes.index_cases import Affine, Cases, Leaf, choose, single
from tightship.graph import Constant


@dataclass(frozen=True, slots=True)
class Table:
    """Elements of a constant: affine in their indices, or one value up to a diagonal."""

    first: float | int
    steps: tuple[int, ...] = ()
    beyond: float | int | None = None
    axes: tuple[int, int] = (0, 0)
    diagonal: int = 0

    def at(self, indices: tuple[Affine, ...]) -> Cases:
        """Return the element at some indices."""
        if self.beyond is not None:
            row, column = (indices[axis] for axis in self.axes)
            seen = (row - column).plus(self.diagonal)
            return choose(seen, _leaf(self.first), _leaf(self.beyond))
        if isinstance(self.first, float):
            return single(self.first)
        found = Affine(constant=self.first)
        for index, step in zip(indices, self.steps, strict=True):
            found += index.times(step)
        return single(found)


def _leaf(value: float | int) -> Leaf:
    return value if isinstance(value, float) else Affine(constant=value)


def table_of(constant: Constant, fixed: tuple[int | None, ...]) -> Table | None:
    """Read a constant at fixed indices along some axes, whole along the others.

    Returns None if its elements follow no rule of the indices along the others.
    """
    array = np.asarray(constant.array())
    if any(place is not None and place >= n for place, n in zip(fixed, array.shape, strict=True)):
        return None
    array = array[tuple(slice(None) if place is None else place for place in fixed)]
    if array.size == 0 or array.dtype.kind not in "fiub":
        return None
    first = array.flat[0].item()
    first = first if isinstance(first, float) else int(first)
    if (array == array.flat[0]).all():
        return Table(first, (0,) * array.ndim)
    if array.dtype.kind in "iu":
        steps = [_step(array, axis) for axis in range(array.ndim)]
        grids = np.ogrid[tuple(slice(n) for n in array.shape)]
        if (array == first + sum(s * g for s, g in zip(steps, grids, strict=True))).all():
            return Table(first, tuple(steps))
    wide = [axis for axis, length in enumerate(array.shape) if length > 1]
    return _triangle(array, (wide[0], wide[1])) if len(wide) == 2 else None


def _step(array: NDArray[Any], axis: int) -> int:
    place = [0] * array.ndim
    place[axis] = min(1, array.shape[axis] - 1)
    return int(array[tuple(place)]) - int(array.flat[0])


def _triangle(array: NDArray[Any], axes: tuple[int, int]) -> Table | None:
    """Read a matrix that has one value up to a diagonal, and another beyond."""
    matrix = array.reshape([array.shape[axis] for axis in axes])
    inside, outside = matrix[-1, 0], matrix[0, -1]
    diagonal = int((matrix[0] == inside).sum()) - 1
    if diagonal < 0:
        diagonal = -int((matrix[:, 0] != inside).sum())
    rows, columns = matrix.shape
    within = np.tri(rows, columns, diagonal, dtype=bool)
    if inside == outside or not (matrix == np.where(within, inside, outside)).all():
        return None
    both = [each.item() for each in (inside, outside)]
    one, other = (each if isinstance(each, float) else int(each) for each in both)
    return Table(one, beyond=other, axes=axes, diagonal=diagonal)
