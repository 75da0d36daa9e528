"""Errors of requests."""

from tightship.driver.oip.regions import Code
from tightship.driver.types.status import ErrorStatus
from tightship.errors import DriverError

OUT_OF_MEMORY = "the server is out of memory"
"""Message for requests that failed for lack of memory and may be repeated."""


class OipError(DriverError):
    """A request breaks a rule of the protocol, or cannot be served.

    Attributes:
        code: Code of the Open Inference Protocol.
    """

    def __init__(self, message: str, code: Code = Code.INVALID_ARGUMENT) -> None:
        super().__init__(message, status=ErrorStatus.INVALID_ARGUMENT)
        self.code = code
