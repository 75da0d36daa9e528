"""Limits of clients of the inference protocol."""

from dataclasses import dataclass

RECENT_NS = 250_000_000
"""Nanoseconds after a request in which its client may send the next before it makes room."""
UNREAD_NS = 5_000_000_000
"""Nanoseconds after which a client that has not read a response makes room for others."""
WAIT_S = 1.0
"""Seconds that a new connection or call waits for a place before it is refused."""


@dataclass(frozen=True, slots=True)
class EndpointLimits:
    """Limits of the servers of HTTP and gRPC, each.

    Attributes:
        body_bytes_max: Largest request, packed and unpacked. On gRPC at most 2 GiB.
        head_bytes_max: Largest target with headers, on HTTP.
        connections_max: Open connections; another takes the place of one without a request, or is
            answered 503 and closed. On gRPC, calls too.
        idle_s: Seconds after which an idle connection is closed. Long, because a client may send
            its next request just then.
        head_s: Seconds in which the headers of a begun request must arrive, on HTTP.
        transfer_s: Seconds in which a body, or the message of a gRPC call, must arrive, or a client
            must have read enough of a response for the next to be written.
        grace_s: Seconds in which requests are still accepted after `drain`, while the server
            reports that it is not ready.
        drain_s: Seconds that begun requests have once the server ends.
    """

    body_bytes_max: int = 64 << 20
    head_bytes_max: int = 64 << 10
    connections_max: int = 128
    idle_s: float = 3600.0
    head_s: float = 10.0
    transfer_s: float = 60.0
    grace_s: float = 0.0
    drain_s: float = 30.0


LIMITS = EndpointLimits()
"""Default limits."""
