"""Buffers in a driver."""

import numpy as np
from numpy.typing import ArrayLike

from tightship.driver.client.held_value import HeldValue
from tightship.driver.client.segment import Array, Segment
from tightship.driver.client.session import Session
from tightship.driver.client.staging import InBuffer
from tightship.driver.protocol import messages as m
from tightship.driver.protocol.replies import BufferDescribed, Done
from tightship.driver.types.dimensions import Dimensions, is_specified
from tightship.driver.types.elements import dtype_of
from tightship.driver.types.operand_type import ValueType
from tightship.driver.types.status import failure
from tightship.errors import DriverError
from tightship.public_calls import public_methods

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
