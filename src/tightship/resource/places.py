"""The resource of the place nearest to the calling thread: `main_memory()`, `scratchpad()`."""

import functools
import os
import threading
from collections.abc import Callable
from dataclasses import dataclass, field

from tightship._core import CompositeResource, HostResource, MemoryResource, current_cpu
from tightship.public_calls import public_call
from tightship.resource.settings import Settings, settings_from
from tightship.resource.topology import Node, Topology, read_topology

SCRATCHPAD_SLABS = ((64, 0.1), (256, 0.1), (1024, 0.1))

Make = Callable[[Node, Settings], MemoryResource]


def make_main_memory(node: Node, settings: Settings) -> MemoryResource:
    """A composite over pages of the node's; they take memory as they are touched.

    Raises:
        OutOfMemoryError: The system refuses so much address space.
    """
    return CompositeResource(
        HostResource(node=_bound(node)),
        settings.main_bytes or node.memory_bytes // 2,
        slabs=settings.slabs,
        best_fit=settings.best_fit,
        free_list_last=settings.free_list_last,
    )


def make_scratchpad(node: Node, settings: Settings) -> MemoryResource:
    """A small composite over huge pages of the node's, there from the start, locked if allowed.

    Raises:
        OutOfMemoryError: The system has not so much memory.
    """
    return CompositeResource(
        HostResource(node=_bound(node), is_filled=True, is_locked=True),
        settings.scratchpad_bytes,
        slabs=SCRATCHPAD_SLABS,
    )


def _bound(node: Node) -> int:
    """The node to prefer; a machine that does not tell its nodes has none to prefer."""
    return node.number if node.cpus else -1


@dataclass(slots=True, eq=False)
class Places:
    """One resource for each node and kind of memory, made when it is first asked for."""

    topology: Topology
    settings: Settings
    cpu: Callable[[], int] = current_cpu
    make_main: Make = make_main_memory
    make_scratch: Make = make_scratchpad
    _made: dict[tuple[Make, int], MemoryResource] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def main_memory(self) -> MemoryResource:
        """Main memory of the node that the calling thread runs on, the same object each time."""
        return self._nearest(self.make_main)

    def scratchpad(self) -> MemoryResource:
        """The fast, small memory of that node, the same object each time."""
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
    """The main memory of the NUMA node that the calling thread runs on.

    The same object for the same node. `TIGHTSHIP_RESOURCE_*` divide it (see `settings`), read
    when the first place is asked for.

    Raises:
        OutOfMemoryError: The system refuses so much address space.
        InputError: A variable has no such value.
    """
    return _places().main_memory()


@public_call
def scratchpad() -> MemoryResource:
    """The scratchpad of that node: a few MiB of huge pages, there from the start.

    Raises:
        OutOfMemoryError: The system has not so much memory.
        InputError: A variable has no such value.
    """
    return _places().scratchpad()
