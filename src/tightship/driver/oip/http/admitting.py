"""Admission of HTTP requests by their heads, before anything of their bodies is used."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from math import ceil

from tightship.driver.oip.admission.gate import NO_USE, AdmissionError, Gate, Headers, Use, joined
from tightship.driver.oip.http.body import SMALL_BYTES
from tightship.driver.oip.http.message import HttpResponse, error_response

OPEN_TARGETS = frozenset({"/v2/health/live", "/v2/health/ready"})
"""Paths that need no token, because what watches a server rarely has one."""
_CHALLENGE = (b"WWW-Authenticate", b'Bearer realm="tightship"')


@dataclass(frozen=True, slots=True)
class Admitted:
    """Client of a request that is admitted.

    Attributes:
        address: Its address.
        account: The account that it counts for.
        use: Its use of the account, to be ended with the request.
    """

    address: str
    account: str
    use: Use = NO_USE


@dataclass(frozen=True, slots=True)
class Refused:
    """Refusal of a request.

    Attributes:
        address: Address of the client.
        is_last: Whether the connection then ends, because a large body may still come.
    """

    address: str
    reason: str
    response: HttpResponse
    is_last: bool


def admitted(
    gate: Gate, host: str, method: str, target: str, pairs: Iterable[tuple[str, str]]
) -> Admitted | Refused:
    """Return the client of a request, or the refusal of the request.

    Args:
        gate: Admission.
        host: Address that the connection comes from.
        method: Method of the request.
        target: Path and query of the request.
        pairs: Names, in lower case, and values of its headers.
    """
    headers = joined(pairs)
    address = gate.client_of(host, headers)
    has_body = _has_body(headers)
    is_open = method in {"GET", "HEAD"} and target in OPEN_TARGETS and not has_body
    try:
        account = gate.admit(address, headers, is_open=is_open)
        return Admitted(address, account, gate.begin(account, is_open=is_open))
    except AdmissionError as error:
        is_last = has_body and not _is_small(headers)
        return Refused(address, str(error), _response(error), is_last)


def _response(error: AdmissionError) -> HttpResponse:
    if error.retry_s is None:
        found = error_response(error.code.http_status, str(error))
        return replace(found, more_headers=(_CHALLENGE,))
    retry = b"Retry-After", b"%d" % max(1, ceil(error.retry_s))
    return replace(error_response(429, str(error)), more_headers=(retry,))


def _has_body(headers: Headers) -> bool:
    return "transfer-encoding" in headers or headers.get("content-length", "0") != "0"


def _is_small(headers: Headers) -> bool:
    """Whether a body was read whole before the request is answered."""
    if "expect" in headers:
        return False  # the client may or may not send it once it has the response
    length = headers.get("content-length", "0")
    is_number = length.isascii() and length.isdigit() and len(length) < 10
    return "transfer-encoding" not in headers and is_number and int(length) <= SMALL_BYTES
