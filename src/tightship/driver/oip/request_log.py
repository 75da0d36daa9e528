"""A log record for each call of the inference protocol, with the id of its request."""

import logging
import os
import re
from dataclasses import dataclass, field
from time import monotonic_ns

from tightship.driver.oip.refusal_log import FIELDS, TEXT_MAX

REQUEST_ID = "x-request-id"
"""Header, or metadata of gRPC, with the id that a client or a proxy gives to a request."""
_ID = re.compile(r"[A-Za-z0-9._~+/=:@-]{1,128}")

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
    """

    request_id: str
    call: str
    client: str = ""
    account: str = ""
    status: int | str = ""
    received_bytes: int = 0
    sent_bytes: int = 0
    _begun_ns: int = field(default_factory=monotonic_ns)

    def end(self) -> None:
        """Log the exchange, which is over."""
        duration_ms = round((monotonic_ns() - self._begun_ns) / 1e6, 3)
        fields = {
            "request_id": self.request_id,
            "client": self.client,
            "account": self.account,
            "call": self.call,
            "status": self.status,
            "duration_ms": duration_ms,
            "received_bytes": self.received_bytes,
            "sent_bytes": self.sent_bytes,
        }
        _LOG.info("%s: %s", self.call, self.status or "no answer", extra={FIELDS: fields})


def begin(call: str, given: str | None) -> Exchange:
    """Begin an exchange.

    Args:
        call: Name of the call.
        given: Id that the client gives; one that is missing or not 1 to 128 letters, digits and
            signs is replaced by a new one.
    """
    is_valid = given is not None and _ID.fullmatch(given) is not None
    request_id = given if given is not None and is_valid else os.urandom(16).hex()
    return Exchange(request_id, call[:TEXT_MAX])
