"""A log record for each call of the inference protocol, with the id of its request."""

import logging
import os
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from time import monotonic_ns

from tightship.driver.oip.refusal_log import FIELDS, TEXT_MAX

REQUEST_ID = "x-request-id"
"""Header, or metadata of gRPC, with the id that a client or a proxy gives to a request."""
_ID = re.compile(r"[A-Za-z0-9._~+/=:@-]{1,128}")

_FAILURES = frozenset({"", "INTERNAL", "UNAVAILABLE", "UNKNOWN"})
"""Statuses of gRPC, and of no answer, that are failures of the server."""

_LOG = logging.getLogger(__name__)


@dataclass(slots=True, eq=False)
class Exchange:
    """A call and its answer.

    Attributes:
        request_id: Id of the call.
        call: Name of the call: method and path, or the name of the method of gRPC.
        client: Address of the client, as `http:ADDRESS:PORT` or as gRPC names it.
        account: What the call counts for: an address, or the name of a token.
        status: Status of the answer: a number of HTTP or a name of gRPC; empty without an answer.
        received_bytes, sent_bytes: Bytes of the messages.
        duration_ms: Milliseconds that it took, once it is over.
        traceparent: Header of the client's trace; empty for none.
    """

    request_id: str
    call: str
    sinks: "Sinks"
    traceparent: str = ""
    client: str = ""
    account: str = ""
    status: int | str = ""
    received_bytes: int = 0
    sent_bytes: int = 0
    duration_ms: float = 0.0
    _begun_ns: int = field(default_factory=monotonic_ns)

    @property
    def is_failure(self) -> bool:
        """Whether the server failed, and not the client."""
        return self.status in _FAILURES or (isinstance(self.status, int) and self.status >= 500)

    def end(self) -> None:
        """Hand the exchange, which is over, to its sinks."""
        self.duration_ms = round((monotonic_ns() - self._begun_ns) / 1e6, 3)
        for sink in self.sinks:
            sink(self)


Sinks = tuple[Callable[[Exchange], None], ...]
"""Functions that take exchanges that are over."""


def log_line(exchange: Exchange) -> None:
    """Log an exchange that is over."""
    names = ("request_id", "client", "account", "call", "status", "duration_ms")
    fields = {name: getattr(exchange, name) for name in (*names, "received_bytes", "sent_bytes")}
    _LOG.info("%s: %s", exchange.call, exchange.status or "no answer", extra={FIELDS: fields})


def begin(call: str, headers: Mapping[str, str], sinks: Sinks) -> Exchange:
    """Begin an exchange.

    Args:
        call: Name of the call.
        headers: Headers by names in lower case. An id in them that is not 1 to 128 letters, digits
            and signs is replaced by a new one.
        sinks: Functions that take it once it is over.
    """
    given = headers.get(REQUEST_ID)
    is_valid = given is not None and _ID.fullmatch(given) is not None
    request_id = given if given is not None and is_valid else os.urandom(16).hex()
    return Exchange(request_id, call[:TEXT_MAX], sinks, headers.get("traceparent", ""))
