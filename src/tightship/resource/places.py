"""Resources of the memory nearest to the calling thread: `main_memory()`, `scratchpad()`."""

import functools
import math
import os
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from resource import RLIM_INFINITY, RLIMIT_AS, RLIMIT_DATA, getrlimit

from tightship._core import (
    CompositeResource,
    FallbackResource,
    FreeListResource,
    HostResource,
    LimitingResource,
    MemoryResource,
    current_cpu,
)
from tightship.errors import OutOfMemoryError
from tightship.public_calls import public_call
from tightship.resource.settings import MAIN_BYTES, Settings, Shares, settings_from
from tightship.resource.topology import Node, Topology, read_topology

SCRATCHPAD_SLABS = ((64, 0.1), (256, 0.1), (1024, 0.1))

Make = Callable[[Node, Settings], MemoryResource]


REGION_BYTES_MAX = 256 << 20
REGION_BYTES_MIN = 1 << 20
REGION_PART = 16
"""Divisor of the main memory, or the process's limit, that bounds a composite."""

GROWTH_BYTES = 64 << 20
"""Least growth of main memory, if that much is left."""

SLABS_PART = 0.8
"""Part of a composite that its slabs take, if slabs are given."""


def make_main_memory(node: Node, settings: Settings) -> MemoryResource:
    """Make a composite over pages of the node, and a free list that grows by chunks of these.

    Pages take memory as they are touched. The bound is `main_bytes`, or else the node's memory.

    Raises:
        OutOfMemoryError: The system lacks memory even for a small composite.
    """
    bound = settings.main_bytes or node.memory_bytes
    host = HostResource(node=_bound(node))
    if settings.slabs is None:
        region_bytes, slabs = _region_bytes(bound), None
    else:
        region_bytes, slabs = _divided(bound, settings.slabs)
    composite = _composite(host, region_bytes, slabs, settings)
    rest_bytes = bound - composite.statistics().reserved_bytes
    if rest_bytes <= 0:
        return composite
    limited = LimitingResource(host, rest_bytes, setting=MAIN_BYTES)
    growing = FreeListResource(
        limited, best_fit=settings.best_fit, chunk_bytes=min(GROWTH_BYTES, rest_bytes)
    )
    return FallbackResource(composite, growing)


def _region_bytes(bound: int) -> int:
    """Return a small size for the composite, because limits of a process count untouched bytes."""
    limits = (getrlimit(RLIMIT_DATA)[0], getrlimit(RLIMIT_AS)[0])
    least = min([bound, *(limit for limit in limits if limit != RLIM_INFINITY)])
    return max(min(least // REGION_PART, REGION_BYTES_MAX), min(bound, REGION_BYTES_MIN))


def _divided(bound: int, slabs: Shares) -> tuple[int, Shares]:
    """Return the size of a composite for slabs of these shares of `bound`, and its own shares."""
    region_bytes = math.ceil(bound * min(1.0, sum(share for _, share in slabs) / SLABS_PART))
    region_bytes = max(region_bytes, min(bound, REGION_BYTES_MIN))
    return region_bytes, tuple((size, share * bound / region_bytes) for size, share in slabs)


def _composite(
    host: HostResource, region_bytes: int, slabs: Shares | None, settings: Settings
) -> CompositeResource:
    """Make a composite, halving its size as long as the system refuses."""
    while True:
        try:
            return CompositeResource(
                host,
                region_bytes,
                slabs=slabs,
                best_fit=settings.best_fit,
                free_list_last=settings.free_list_last,
            )
        except OutOfMemoryError:
            if region_bytes <= REGION_BYTES_MIN:
                raise
            region_bytes //= 2


def make_scratchpad(node: Node, settings: Settings) -> MemoryResource:
    """Make a small composite over huge pages of the node, backed at once, locked if allowed.

    Raises:
        OutOfMemoryError: The system lacks that much memory.
    """
    return CompositeResource(
        HostResource(node=_bound(node), is_filled=True, is_locked=True),
        settings.scratchpad_bytes,
        slabs=SCRATCHPAD_SLABS,
    )


def _bound(node: Node) -> int:
    """Return the node to prefer; -1 if the machine does not report its nodes."""
    return node.number if node.cpus else -1


@dataclass(slots=True, eq=False)
class Places:
    """One resource for each node and kind of memory, made on first use."""

    topology: Topology
    settings: Settings
    cpu: Callable[[], int] = current_cpu
    make_main: Make = make_main_memory
    make_scratch: Make = make_scratchpad
    _made: dict[tuple[Make, int], MemoryResource] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def main_memory(self) -> MemoryResource:
        """Return main memory of the calling thread's node, the same object each time."""
        return self._nearest(self.make_main)

    def scratchpad(self) -> MemoryResource:
        """Return the fast, small memory of that node, the same object each time."""
        return self._nearest(self.make_scratch)

    def _nearest(self, make: Make) -> MemoryResource:
        node = self.topology.nearest(self.cpu())
        found = self._made.get((make, node.number))
        if found is not None:
            return found
        with self._lock:
            if (make, node.number) not in self._made:
                self._made[make, node.number] = make(node, self.settings)
            return self._made[make, node.number]


@functools.cache
def _places() -> Places:
    machine_bytes = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    return Places(read_topology(machine_bytes=machine_bytes), settings_from())


@public_call
def main_memory() -> MemoryResource:
    """Return the main memory of the NUMA node that the calling thread runs on.

    It is one object for each node. It grows as it is used, up to the node's memory or
    `TIGHTSHIP_RESOURCE_MAIN_BYTES`; `TIGHTSHIP_RESOURCE_*` divide it (see `settings`), read on the
    first call.

    Raises:
        OutOfMemoryError: The system lacks memory even for a small composite.
        InputError: A variable has an invalid value.
    """
    return _places().main_memory()


@public_call
def scratchpad() -> MemoryResource:
    """Return the scratchpad of that node: a few MiB of huge pages, backed from the start.

    Raises:
        OutOfMemoryError: The system lacks that much memory.
        InputError: A variable has an invalid value.
    """
    return _places().scratchpad()
