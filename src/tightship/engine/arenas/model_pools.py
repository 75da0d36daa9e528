"""Pools of a model for what its runs take outside the plan, given back when runs stop."""

import threading
import time
from collections.abc import Callable

from tightship._core import DynamicMemory, DynamicPools, PoolStatistics
from tightship.engine.arenas.idle_trimmer import IdleTrimmer

LIMIT_MAX = 1 << 56
"""Most bytes that the core counts."""


class ModelPools:
    """Memory of steps whose shapes follow from data: each result and scratch has a pool.

    Free pools hold at most the budget, the limit, and what runs needed at once lately; after
    `idle_s` without a run they are given back.

    Attributes:
        limit_bytes: Most bytes that each run may have outside the plan; None for no limit.
    """

    def __init__(
        self,
        budget_bytes: int,
        limit_bytes: int | None = None,
        idle_s: float | None = None,
        *,
        clock_ns: Callable[[], int] = time.monotonic_ns,
    ) -> None:
        """Make pools without memory; `idle_s` None keeps free ones."""
        limit = None if limit_bytes is None else min(limit_bytes, LIMIT_MAX)
        self.limit_bytes, self._idle_s = limit, idle_s
        self._pools = DynamicPools(min(budget_bytes, LIMIT_MAX if limit is None else limit))
        self._clock_ns, self._ended_ns = clock_ns, 0
        self._lock = threading.RLock()
        self._watch = IdleTrimmer(self, self._lock)

    def begin(self) -> DynamicMemory:
        """Return the memory of a run that begins."""
        return DynamicMemory(self._pools, self.limit_bytes)

    def end(self, memory: DynamicMemory) -> None:
        """End a run: its live arrays are the caller's, and go back when the caller drops them."""
        memory.end()
        if self._idle_s is not None and self._pools.is_held:
            self._ended_ns = self._clock_ns()
            if not self._watch.is_waiting:
                with self._lock:
                    self._watch.start(self._idle_s)

    @property
    def statistics(self) -> PoolStatistics:
        """Counts and bytes of pools: free ones, and those of runs and of results that live."""
        return self._pools.pools.statistics()

    def release_unused(self) -> int:
        """Give free pools back; return their bytes."""
        return self._pools.release_unused()

    def sweep(self) -> int:
        """Give free pools back if no run has ended lately; return their bytes."""
        with self._lock:
            assert self._idle_s is not None
            left_s = self._idle_s - (self._clock_ns() - self._ended_ns) / 1e9
            if left_s > 0:
                self._watch.start(left_s)
                return 0
            return self._pools.release_unused()

    def forked(self) -> None:
        """Keep the pools, which a forked child has as well."""

    def close(self) -> None:
        """Give free pools back now, and others as soon as their arrays are dropped."""
        self._pools.pools.budget_bytes = 0
        self._pools.release_unused()
        self._watch.stop()
