"""Admission of HTTP requests by their heads, before anything of their bodies is used."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from tightship.driver.oip.admission.gate import AdmissionError, Gate
from tightship.driver.oip.http.body import SMALL_BYTES
from tightship.driver.oip.http.message import HttpResponse, error_response

OPEN_TARGETS = frozenset({"/v2/health/live", "/v2/health/ready"})
"""Paths that need no token, because what watches a server rarely has one."""
_CHALLENGE = (b"WWW-Authenticate", b'Bearer realm="tightship"')


@dataclass(frozen=True, slots=True)
class Refused:
    """Refusal of a request.

    Attributes:
        is_last: Whether the connection then ends, because a large body may still come.
    """

    reason: str
    response: HttpResponse
    is_last: bool


def account_of(
    gate: Gate, host: str, method: str, target: str, headers: Mapping[str, str]
) -> str | Refused:
    """Return the account of a request's client, or the refusal of the request.

    Args:
        gate: Admission.
        host: Address of the client.
        method: Method of the request.
        target: Path and query of the request.
        headers: Headers by names in lower case.
    """
    has_body = _has_body(headers)
    is_open = method in {"GET", "HEAD"} and target in OPEN_TARGETS and not has_body
    try:
        return gate.admit(host, headers, is_open=is_open)
    except AdmissionError as error:
        response = error_response(error.code.http_status, str(error))
        challenged = replace(response, more_headers=(_CHALLENGE,))
        return Refused(str(error), challenged, is_last=has_body and not _is_small(headers))


def _has_body(headers: Mapping[str, str]) -> bool:
    return "transfer-encoding" in headers or headers.get("content-length", "0") != "0"


def _is_small(headers: Mapping[str, str]) -> bool:
    """Whether a body was read whole before the request is answered."""
    if "expect" in headers:
        return False  # the client may or may not send it once it has the response
    length = headers.get("content-length", "0")
    is_number = length.isascii() and length.isdigit() and len(length) < 10
    return "transfer-encoding" not in headers and is_number and int(length) <= SMALL_BYTES
