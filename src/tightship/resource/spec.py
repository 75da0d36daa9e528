"""Resources described in a word: `composite`, `limit:1GiB/pool:2MiB`."""

import os
from collections.abc import Callable, Mapping
from typing import TypeVar

from tightship._core import (
    BumpResource,
    CachingSimulation,
    CombiningResource,
    CompositeResource,
    FreeListResource,
    GuardedResource,
    GuardPageResource,
    HostResource,
    LimitingResource,
    MallocResource,
    MemoryResource,
    StatisticsResource,
    TrackingResource,
)
from tightship.errors import InputError
from tightship.public_calls import public_call
from tightship.quantity import parse_bytes
from tightship.resource.virtual import virtual_resource

CHUNK_BYTES = 2 << 20

_Make = TypeVar("_Make")


def _half_of_memory() -> int:
    return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") // 2


ROOTS: Mapping[str, Callable[[int | None], MemoryResource]] = {
    "composite": lambda size: CompositeResource(HostResource(), size or _half_of_memory()),
    "seed": lambda size: CompositeResource(
        HostResource(), size or _half_of_memory(), best_fit=False, free_list_last=True
    ),
    "pool": lambda size: FreeListResource(HostResource(), chunk_bytes=size or CHUNK_BYTES),
    "first_fit": lambda size: FreeListResource(
        HostResource(), chunk_bytes=size or CHUNK_BYTES, best_fit=False
    ),
    "bump": lambda size: BumpResource(HostResource(), size or _half_of_memory(), 1),
    "virtual": lambda size: virtual_resource(page_bytes=size),
    "virtual_seed": lambda size: virtual_resource(policy="seed", page_bytes=size),
    "host": lambda _: HostResource(),
    "malloc": lambda _: MallocResource(),
    "pytorch_simulation": lambda _: CachingSimulation(),
}
"""By name, of a size: a region's, or that of the chunks or pages that are taken."""

ADAPTORS: Mapping[str, Callable[[MemoryResource, int | None], MemoryResource]] = {
    "limit": lambda upstream, size: LimitingResource(upstream, size or 0),
    "statistics": lambda upstream, _: StatisticsResource(upstream),
    "combining": lambda upstream, _: CombiningResource(upstream),
    "tracking": lambda upstream, _: TrackingResource(upstream),
    "guarded": lambda upstream, size: GuardedResource(upstream, quarantine_bytes=size or 0),
    "guard_pages": lambda upstream, size: GuardPageResource(upstream, quarantine_bytes=size or 0),
}

SIMULATIONS = frozenset({"pytorch_simulation"})
"""Roots of which only what they hold is to be compared: their time is another program's."""

DEFAULTS = (
    *("composite", "pool", "virtual", "malloc", "pytorch_simulation", "first_fit", "seed"),
    *("virtual_seed", "host"),
)


def is_simulation(spec: str) -> bool:
    """Whether the root of the stack is a simulation."""
    return spec.rsplit("/", 1)[-1].partition(":")[0] in SIMULATIONS


@public_call
def resource_from(spec: str) -> MemoryResource:
    """Make what `spec` says: names from the outermost to the root, each with a size or none.

    Raises:
        InputError: A name is unknown, a size is none, or the stack can never work.
        OutOfMemoryError: The system refuses the root its region.
    """
    *outer, root = [_part(part) for part in spec.split("/")]
    name, size = root
    resource = _found("root", name, ROOTS)(size)
    for name, size in reversed(outer):
        resource = _found("adaptor", name, ADAPTORS)(resource, size)
    return resource


def _part(text: str) -> tuple[str, int | None]:
    name, _, size = text.partition(":")
    return name, parse_bytes(size) if size else None


def _found(kind: str, name: str, table: Mapping[str, _Make]) -> _Make:
    if name not in table:
        known = ", ".join(f"`{each}`" for each in table)
        raise InputError(f"`{name}` is no {kind} of a resource: {known} are.")
    return table[name]
