"""Numbers that are never given twice."""

from tightship.driver.types.status import ErrorStatus
from tightship.errors import DriverError


class Identifiers:
    """Positive numbers of so many bits, each once, in an order that does not tell how many.

    Multiplying by an odd number permutes the numbers below a power of two.
    """

    def __init__(self, bits: int, key: int) -> None:
        """`key` chooses the order."""
        self._mask = (1 << bits) - 1
        self._factor = key | 1
        self._count = 0

    def take(self) -> int:
        """The next number.

        Raises:
            DriverError: RESOURCE_EXHAUSTED_PERSISTENT: all were given.
        """
        if self._count == self._mask:
            raise DriverError(
                f"All {self._mask} numbers were given; restart the driver.",
                status=ErrorStatus.RESOURCE_EXHAUSTED_PERSISTENT,
            )
        self._count += 1
        return self._count * self._factor & self._mask
