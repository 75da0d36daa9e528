"""Limits on the calls of each client in a time."""

import threading
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from ipaddress import IPv6Address, ip_address, ip_network
from time import monotonic

CLIENTS_MAX = 16_384
"""Clients whose calls are counted; beyond that, the one that called longest ago is forgotten."""
NETWORK_BITS = 64
"""Bits of an IPv6 address that clients count by, because one machine may use all others."""
_PERIODS = {1: "a second", 60: "a minute", 3600: "an hour", 86_400: "a day"}

Rate = tuple[int, int]
"""Calls, and the seconds in which a client may make so many."""


@dataclass(frozen=True, slots=True)
class Wait:
    """Refusal of a call: why, and the seconds after which the client may call again."""

    reason: str
    seconds: float


class RateLimits:
    """Calls that each client may make, by all of several rates. May be used from several threads.

    A client that has paused for a period may make all calls of a rate at once; then each call comes
    back after its part of the period. Calls that are refused do not count.
    """

    def __init__(self, rates: Sequence[Rate]) -> None:
        """Limit every client to these rates."""
        self._rates = tuple(rates)
        # For each client and rate, the time at which all of its calls have come back.
        self._full_s = OrderedDict[str, tuple[float, ...]]()
        self._lock = threading.Lock()

    def take(self, client: str) -> Wait | None:
        """Count a call of a client; return why it has to wait instead, if it has to."""
        now_s = monotonic()
        with self._lock:
            before = self._full_s.get(client, (now_s,) * len(self._rates))
            after = tuple(
                max(full_s, now_s) + period_s / count
                for full_s, (count, period_s) in zip(before, self._rates, strict=True)
            )
            waits = [
                (full_s - now_s - rate[1], rate)
                for full_s, rate in zip(after, self._rates, strict=True)
            ]
            late_s, (count, period_s) = max(waits)
            if late_s > 1e-9:
                said = _PERIODS.get(period_s, f"in {period_s} s")
                return Wait(f"more than {count} calls {said}", late_s)
            self._full_s[client] = after
            self._full_s.move_to_end(client)
            if len(self._full_s) > CLIENTS_MAX:
                self._full_s.popitem(last=False)
        return None

    def account_of(self, address: str) -> str:
        """Return what a client without a token counts for: its address, or its IPv6 network."""
        try:
            found = ip_address(address.partition("%")[0])
        except ValueError:
            return address
        if isinstance(found, IPv6Address) and found.ipv4_mapped is None:
            return str(ip_network((found, NETWORK_BITS), strict=False))
        return address
