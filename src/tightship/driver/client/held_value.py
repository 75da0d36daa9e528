"""Interface of buffers whose value another buffer can copy."""

from abc import ABC, abstractmethod

from tightship.driver.client.segment import Array


class HeldValue(ABC):
    """Buffer in a driver, or in place of one."""

    @abstractmethod
    def value(self) -> Array:
        """Return the value, with its dimensions, in memory of this process.

        Raises:
            DriverError: GENERAL_FAILURE: the buffer is empty.
        """
