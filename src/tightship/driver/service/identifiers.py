"""Identifiers that are never reused."""

from tightship.driver.types.status import ErrorStatus
from tightship.errors import DriverError


class Identifiers:
    """Positive numbers of `bits` bits in an order that does not reveal how many were taken.

    Multiplying by an odd number permutes the numbers below a power of two.
    """

    def __init__(self, bits: int, key: int) -> None:
        """Choose the order by `key`."""
        self._mask = (1 << bits) - 1
        self._factor = key | 1
        self._count = 0

    def take(self) -> int:
        """Return the next number.

        Raises:
            DriverError: RESOURCE_EXHAUSTED_PERSISTENT: all were taken.
        """
        if self._count == self._mask:
            raise DriverError(
                f"All {self._mask} identifiers are used up; restart the driver.",
                status=ErrorStatus.RESOURCE_EXHAUSTED_PERSISTENT,
            )
        self._count += 1
        return self._count * self._factor & self._mask
