"""Limits on the calls, and on the bytes, of each client in a time."""

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
"""Calls or bytes, and the seconds in which a client may have so many."""


@dataclass(frozen=True, slots=True)
class Wait:
    """Refusal of a call: why, and the seconds after which the client may call again."""

    reason: str
    seconds: float


class _Buckets:
    """Uses of several rates by each client. Callers take its lock.

    A client that has paused for a period has all of a rate again; what it uses comes back evenly.
    """

    def __init__(self, rates: Sequence[Rate]) -> None:
        """Give every client these rates."""
        self.rates = tuple(rates)
        self.lock = threading.Lock()
        # For each client and rate, the time at which all that was used has come back.
        self._full_s = OrderedDict[str, tuple[float, ...]]()

    def after(self, client: str, amount: int, now_s: float) -> tuple[float, ...]:
        """Return when all would have come back, by rate, once a client has used an amount more."""
        before = self._full_s.get(client, (now_s,) * len(self.rates))
        return tuple(
            max(full_s, now_s) + amount * period_s / count
            for full_s, (count, period_s) in zip(before, self.rates, strict=True)
        )

    def keep(self, client: str, full_s: tuple[float, ...]) -> None:
        """Note the times of a client, and forget the one of longest ago if there are too many."""
        self._full_s[client] = full_s
        self._full_s.move_to_end(client)
        if len(self._full_s) > CLIENTS_MAX:
            self._full_s.popitem(last=False)

    def excess(self, full_s: tuple[float, ...], now_s: float) -> tuple[float, Rate]:
        """Return the seconds after which no rate is exceeded, and the rate that is last."""
        return max(
            (each_s - now_s - rate[1], rate)
            for each_s, rate in zip(full_s, self.rates, strict=True)
        )


class RateLimits:
    """Calls that each client may make, by all of several rates. May be used from several threads.

    Calls that are refused do not count.
    """

    def __init__(self, rates: Sequence[Rate]) -> None:
        """Limit every client to these rates of calls."""
        self._buckets = _Buckets(rates)

    def take(self, client: str) -> Wait | None:
        """Count a call of a client; return why it has to wait instead, if it has to."""
        now_s, buckets = monotonic(), self._buckets
        with buckets.lock:
            after = buckets.after(client, 1, now_s)
            late_s, (count, period_s) = buckets.excess(after, now_s)
            if late_s > 1e-9:
                return Wait(f"more than {count} calls {_said(period_s)}", late_s)
            buckets.keep(client, after)
        return None


class ByteLimits:
    """Bytes that each client may send and receive. May be used from several threads.

    Bytes are known once they have come. So a call begins if the client is within all rates, and
    what it exceeds them by delays the next ones.
    """

    def __init__(self, rates: Sequence[Rate]) -> None:
        """Limit every client to these rates of bytes."""
        self._buckets = _Buckets(rates)

    def wait(self, client: str) -> Wait | None:
        """Return why a client has to wait before its next call, if it has to."""
        now_s, buckets = monotonic(), self._buckets
        with buckets.lock:
            now = buckets.after(client, 0, now_s)
            late_s, (count, period_s) = buckets.excess(now, now_s)
        if late_s <= 1e-9:
            return None
        return Wait(f"calls of more than {count} bytes {_said(period_s)}", late_s)

    def spend(self, client: str, size_bytes: int) -> None:
        """Count bytes that a client has sent or is sent."""
        now_s, buckets = monotonic(), self._buckets
        with buckets.lock:
            buckets.keep(client, buckets.after(client, size_bytes, now_s))


def account_of(address: str) -> str:
    """Return what a client without a token counts for: its address, or its IPv6 network."""
    try:
        found = ip_address(address.partition("%")[0])
    except ValueError:
        return address
    if isinstance(found, IPv6Address) and found.ipv4_mapped is None:
        return str(ip_network((found, NETWORK_BITS), strict=False))
    return address


def _said(period_s: int) -> str:
    return _PERIODS.get(period_s, f"in {period_s} s")
