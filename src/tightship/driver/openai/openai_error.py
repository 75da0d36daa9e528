"""Errors as OpenAI's clients read them."""

import json
from math import ceil

from tightship.driver.oip.refusal import OUT_OF_MEMORY, OipError
from tightship.driver.texts.text_worker import BusyError
from tightship.errors import GraphError, InputError, StoppedError


class ApiError(Exception):
    """Refusal of a request.

    Attributes:
        status: Status of HTTP.
        code: Code that programs can read; None for none.
        param: Field of the request that is wrong; None for none.
        retry_s: Seconds after which the request may be repeated; None for never.
    """

    def __init__(
        self,
        status: int,
        message: str,
        *,
        code: str | None = None,
        param: str | None = None,
        retry_s: float | None = None,
    ) -> None:
        super().__init__(message)
        self.status, self.code, self.param, self.retry_s = status, code, param, retry_s

    @property
    def body(self) -> bytes:
        """Body of the response."""
        kind = "invalid_request_error" if self.status < 500 else "server_error"
        kind = "rate_limit_error" if self.status == 429 else kind
        said = {"message": str(self), "type": kind, "param": self.param, "code": self.code}
        return json.dumps({"error": said}).encode()

    @property
    def headers(self) -> list[tuple[bytes, bytes]]:
        """Headers of the response, without those of its body."""
        if self.retry_s is None:
            return []
        return [(b"Retry-After", b"%d" % max(1, ceil(self.retry_s)))]


def api_error(error: Exception) -> ApiError | None:
    """Return the refusal for an error; None for a defect, of which clients get no details."""
    found: ApiError | None = None
    match error:
        case ApiError():
            found = error
        case BusyError():
            found = ApiError(429, str(error), code="busy", retry_s=error.retry_s)
        case OipError():
            status = error.code.http_status
            code = "model_not_found" if status == 404 else None
            found = ApiError(status, str(error), code=code)
        case StoppedError():
            found = ApiError(503, "the answer was stopped, as the server ends", retry_s=1)
        case MemoryError():
            found = ApiError(503, OUT_OF_MEMORY, retry_s=1)
        case InputError() | GraphError():
            found = ApiError(400, str(error))
    return found
