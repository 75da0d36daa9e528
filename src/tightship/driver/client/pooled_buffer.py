"""Substitute for a driver's buffer: memory of the client."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import ArrayLike

from tightship.driver.client.held_value import HeldValue
from tightship.driver.client.segment import Array, Placed, Segment
from tightship.driver.client.session import Session
from tightship.driver.types.dimensions import Dimensions, combine, is_specified
from tightship.driver.types.elements import dtype_of
from tightship.driver.types.operand_type import ValueType
from tightship.driver.types.status import failure, invalid
from tightship.public_calls import public_methods


@public_methods
class PooledBuffer(HeldValue):
    """Value in a segment with the interface of `DeviceBuffer`."""

    def __init__(self, session: Session, kind: ValueType) -> None:
        """Allocate a segment; all dimensions of `kind` must be known."""
        self._segment = Segment(session, max(1, kind.size_bytes))
        self._placed = self._segment.place(kind.dimensions, dtype_of(kind))

    def of(self, *_: int) -> Placed:
        """Return the buffer as an argument; dimensions are ignored, because they are known."""
        return self._placed

    def copy_from(self, source: ArrayLike | HeldValue, _: Dimensions = ()) -> None:
        """Fill it from an array of exactly its size, or with the value of another buffer.

        Raises:
            DriverError: INVALID_ARGUMENT: the size does not fit; GENERAL_FAILURE: the other buffer
                is empty.
        """
        if source is self:
            return
        array = source.value() if isinstance(source, HeldValue) else np.ascontiguousarray(source)
        self._check_size(array.nbytes)
        _bytes(self._placed.array)[...] = _bytes(array)

    def copy_to(self, target: Array) -> None:
        """Copy the value into an array of exactly its size.

        Raises:
            DriverError: INVALID_ARGUMENT: the size differs.
        """
        self._check_size(target.nbytes)
        target[...] = self._placed.array.reshape(-1).view(target.dtype).reshape(target.shape)

    def value(self) -> Array:
        """Return the value in place."""
        return self._placed.array

    def close(self) -> None:
        """Release the segment. Harmless when repeated."""
        self._segment.close()

    def _check_size(self, size_bytes: int) -> None:
        if size_bytes != self._placed.array.nbytes:
            raise invalid(
                f"The array has {size_bytes} bytes; the buffer has {self._placed.array.nbytes}."
            )


def common_kind(kinds: Sequence[ValueType], dimensions: Dimensions) -> ValueType:
    """Return the type of a buffer for several uses.

    Raises:
        DriverError: INVALID_ARGUMENT: there is no use, or they contradict each other.
    """
    known: Dimensions | None = dimensions
    for kind in kinds:
        known = None if known is None else combine(known, kind.dimensions)
    if not kinds or known is None or len({replace(each, dimensions=()) for each in kinds}) > 1:
        raise invalid("A buffer needs at least one use; all must have one type and dimensions.")
    return replace(kinds[0], dimensions=known)


def specified(kind: ValueType) -> ValueType:
    """Return the type if all of its dimensions are known.

    Raises:
        DriverError: GENERAL_FAILURE: a dimension is unknown.
    """
    if not is_specified(kind.dimensions, is_scalar=kind.is_scalar):
        raise failure(f"Dimensions {list(kind.dimensions)} are partly unknown; give all of them.")
    return kind


def _bytes(array: Array) -> Array:
    return array.reshape(-1).view(np.uint8)
