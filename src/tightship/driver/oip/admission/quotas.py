"""Quotas of each client: calls and bytes in a time, and calls at once."""

import threading
from collections import Counter
from collections.abc import Sequence

from tightship.driver.oip.admission.rates import ByteLimits, Rate, RateLimits, Wait, account_of

BUSY_S = 1.0
"""Seconds after which a client with too many calls at once is told to try again."""


class Quotas:
    """Limits for each client, by its account. May be used from several threads."""

    def __init__(
        self,
        calls: Sequence[Rate] = (),
        sizes: Sequence[Rate] = (),
        concurrent_max: int | None = None,
    ) -> None:
        """Limit every client.

        Args:
            calls: Rates of calls.
            sizes: Rates of bytes of requests and responses together.
            concurrent_max: Calls under way at once; None for no limit.
        """
        self._calls = RateLimits(calls) if calls else None
        self._sizes = ByteLimits(sizes) if sizes else None
        self._concurrent_max = concurrent_max
        self._running = Counter[str]()
        self._lock = threading.Lock()

    def take(self, account: str) -> Wait | None:
        """Count a call; return why the client has to wait instead, if it has to."""
        wait = None if self._sizes is None else self._sizes.wait(account)
        if wait is None and self._calls is not None:
            wait = self._calls.take(account)
        return wait

    def begin(self, account: str) -> Wait | None:
        """Begin a call, which `end` ends; return why the client has to wait, if it has to."""
        if self._concurrent_max is None:
            return None
        with self._lock:
            if self._running[account] >= self._concurrent_max:
                return Wait(f"more than {self._concurrent_max} calls at once", BUSY_S)
            self._running[account] += 1
        return None

    def end(self, account: str) -> None:
        """End a call that has begun."""
        if self._concurrent_max is None:
            return
        with self._lock:
            self._running[account] -= 1
            if not self._running[account]:
                del self._running[account]

    def spend(self, account: str, size_bytes: int) -> None:
        """Count bytes of a request or a response."""
        if self._sizes is not None:
            self._sizes.spend(account, size_bytes)

    def account_of(self, address: str) -> str:
        """Return what a client without a token counts for: its address, or its IPv6 network."""
        return account_of(address)
