"""Counts the pages of several holders against one cap, and takes them from idle holders."""

import threading
from collections import deque
from typing import Protocol
from weakref import WeakSet

from tightship.engine.state.cache_runs import PAGE
from tightship.engine.state.page_count import PageCount
from tightship.errors import CapacityError
from tightship.quantity import format_bytes


class IdleHolder(Protocol):
    """Holder of pages that can do without them while it is idle."""

    @property
    def idle_since(self) -> int:
        """Time or number that grows from one use of any holder to the next."""

    def evict(self) -> bool:
        """Give all pages back; returns False if the holder is in use, or has none.

        Raises:
            CapacityError: What the holder has cannot be kept elsewhere.
        """


class PagePool:
    """Pages up to a cap; the system supplies them, and makes them zero.

    Attributes:
        cap: Most pages.
        evictions: Times that a holder lost its pages.
    """

    def __init__(self, cap: int, *, evicts: bool) -> None:
        """Start with all pages free.

        Args:
            cap: Most pages.
            evicts: Whether idle holders lose their pages once no page is free.
        """
        self.cap, self.evictions, self._evicts = cap, 0, evicts
        self._used = 0
        self._given: deque[int] = deque()
        self._lock = threading.RLock()
        self._holders: WeakSet[IdleHolder] = WeakSet()

    @property
    def used(self) -> int:
        """Pages that holders have."""
        with self._lock:
            while self._given:
                self._used -= self._given.popleft()
            return self._used

    def add(self, holder: IdleHolder) -> None:
        """Let a holder lose its pages, if the pool evicts."""
        if self._evicts:
            with self._lock:
                self._holders.add(holder)

    def remove(self, holder: IdleHolder) -> None:
        """Let a holder keep its pages."""
        with self._lock:
            self._holders.discard(holder)

    def take(self, count: int, taker: PageCount) -> None:
        """Count pages as taken.

        Raises:
            CapacityError: The cap does not hold them, and no holder can do without its own.
        """
        with self._lock:
            while self.used + count > self.cap:
                if count + taker.count > self.cap or not self._evict_one():
                    raise self._full(count)
            self._used += count

    def give(self, count: int) -> None:
        """Count pages as free again.

        Takes no lock, because holders are also collected while one is held.
        """
        self._given.append(count)

    def _evict_one(self) -> bool:
        for holder in sorted(self._holders, key=lambda each: each.idle_since):
            if holder.evict():
                self.evictions += 1
                return True
        return False

    def _full(self, count: int) -> CapacityError:
        used, cap = self.used * PAGE, self.cap * PAGE
        return CapacityError(
            f"The session needs {format_bytes(count * PAGE)} more for its caches, and "
            f"{format_bytes(cap - used)} of the pool's {format_bytes(cap)} are free. Close, reset "
            "or truncate a session of the pool, or make a larger pool"
            + ("." if self._evicts else ', or one with `at_cap="evict"`.'),
            needed_bytes=used + count * PAGE,
            limit_bytes=cap,
        )
