"""Buffers in a driver."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import ArrayLike

from tightship.driver.client.segment import Array, Placed, Segment
from tightship.driver.client.session import Session
from tightship.driver.client.staging import InBuffer
from tightship.driver.protocol import messages as m
from tightship.driver.protocol.replies import BufferDescribed, Done
from tightship.driver.types.dimensions import Dimensions, combine, is_specified
from tightship.driver.types.elements import dtype_of
from tightship.driver.types.operand_type import ValueType
from tightship.driver.types.status import failure, invalid
from tightship.errors import DriverError
from tightship.public_calls import public_methods


class HeldValue(ABC):
    """Buffer in a driver, or in place of one."""

    @abstractmethod
    def value(self) -> Array:
        """Return the value, with its dimensions, in memory of this process.

        Raises:
            DriverError: GENERAL_FAILURE: the buffer is empty.
        """


NO_POOL = 0


@public_methods
class DeviceBuffer(HeldValue):
    """Memory in the driver for inputs and outputs.

    Attributes:
        token: Identifier on this connection.
    """

    def __init__(self, session: Session, token: int, kind: ValueType) -> None:
        """Wrap a buffer; `kind` has the dimensions known at its allocation."""
        self._session = session
        self._kind = kind
        self._whole = InBuffer(token)
        self.token = token

    def of(self, *dimensions: int) -> InBuffer:
        """Return the buffer as an argument; `dimensions` complete those unknown to the model."""
        return InBuffer(self.token, dimensions) if dimensions else self._whole

    def copy_from(self, source: ArrayLike | HeldValue, dimensions: Dimensions = ()) -> None:
        """Fill it from an array of exactly its size, or with the value of another buffer.

        Buffers of the same driver and client are copied there, others through memory of this
        process. A failure leaves this buffer empty.

        Args:
            source: Array or buffer; the buffer itself is a no-op.
            dimensions: Dimensions of an array, if the buffer's are unknown.

        Raises:
            DriverError: INVALID_ARGUMENT: the size, the type or the dimensions do not fit;
                GENERAL_FAILURE: the other buffer is empty, or one of them is in use.
        """
        if source is self:
            return
        if isinstance(source, DeviceBuffer) and source.is_beside(self):
            self._session.expect(Done, m.CopyBetween(self.token, source.token))
        elif isinstance(source, HeldValue):
            try:
                value = source.value()
            except DriverError:  # a copy from a missing pool fails and so empties this buffer
                self._session.forget(m.CopyFrom(self.token, NO_POOL))
                raise
            self._fill(value, value.shape)
        else:
            self._fill(np.asarray(source), dimensions)

    def _fill(self, array: Array, dimensions: Dimensions) -> None:
        with Segment(self._session, max(1, array.nbytes)) as segment:
            segment.place(array.shape, array.dtype).array[...] = array
            self._session.expect(Done, m.CopyFrom(self.token, segment.pool, dimensions))

    def is_beside(self, other: "DeviceBuffer") -> bool:
        """Whether both are in one driver for one client, which copies between them."""
        return self._session is other._session and self._copies_between

    @property
    def _copies_between(self) -> bool:
        return "buffer_copies" in self._session.features()

    def copy_to(self, target: Array) -> None:
        """Copy the value into an array of exactly its size.

        Raises:
            DriverError: GENERAL_FAILURE: it is empty; INVALID_ARGUMENT: the size differs.
        """
        with Segment(self._session, max(1, target.nbytes)) as segment:
            self._session.expect(Done, m.CopyTo(self.token, segment.pool))
            target[...] = segment.place(target.shape, target.dtype).array

    def value(self) -> Array:
        """Return a copy of the value.

        Raises:
            DriverError: GENERAL_FAILURE: it is empty, or the driver does not report its dimensions.
        """
        found = np.empty(self._dimensions(), dtype_of(self._kind))
        self.copy_to(found)
        return found

    def _dimensions(self) -> Dimensions:
        known = self._kind.dimensions
        if is_specified(known, is_scalar=self._kind.is_scalar):
            return known
        if not self._copies_between:
            raise failure(
                f"The driver does not report the dimensions of a buffer of {list(known)}; use "
                "`copy_to` with an array of its dimensions."
            )
        return self._session.expect(BufferDescribed, m.DescribeBuffer(self.token)).dimensions

    def close(self) -> None:
        """Release the buffer."""
        self._session.forget(m.Free(self.token))


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
        DriverError: INVALID_ARGUMENT: `kinds` is empty, or its types or dimensions differ.
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
