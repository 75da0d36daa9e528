"""What buffers of all kinds have in common: a value that another buffer can take over."""

from abc import ABC, abstractmethod

from tightship.driver.client.segment import Array


class HeldValue(ABC):
    """A buffer in a driver, or in place of one."""

    @abstractmethod
    def value(self) -> Array:
        """What it holds, with its dimensions, in memory of this process.

        Raises:
            DriverError: GENERAL_FAILURE: it holds nothing.
        """
