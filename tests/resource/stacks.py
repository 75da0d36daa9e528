"""Stacks of resources, each layer within what the one below has room for."""

import os
from collections.abc import Callable, Mapping, Sequence

from tests.resource.conformance import UPSTREAMS
from tightship.resource import (
    AlignedResource,
    BinningResource,
    BumpResource,
    CallbackResource,
    CombiningResource,
    CompositeResource,
    FailingResource,
    FailureCallbackResource,
    FallbackResource,
    FreeListResource,
    GuardedResource,
    GuardPageResource,
    LimitingResource,
    MemoryResource,
    SlabResource,
    StatisticsResource,
    TracingResource,
    TrackingResource,
    pool,
)

Layer = Callable[[MemoryResource, int], MemoryResource]
"""Function of an upstream, and of the bytes that it has room for."""

LAYERS: Mapping[str, Layer] = {
    "bump": lambda upstream, size: BumpResource(upstream, size, 1),
    "slab": lambda upstream, size: SlabResource(upstream, size, 512),
    "large slab": lambda upstream, size: SlabResource(upstream, size, size // 4),
    "free list": lambda upstream, _: FreeListResource(upstream),
    "free list of chunks": lambda upstream, size: FreeListResource(
        upstream, chunk_bytes=size // 4, best_fit=False
    ),
    "composite": lambda upstream, size: CompositeResource(upstream, size, slabs=[(64, 0.3)]),
    "seed": lambda upstream, size: CompositeResource(
        upstream, size, slabs=[(128, 0.3)], best_fit=False, free_list_last=True
    ),
    "pool": lambda upstream, size: pool(upstream, max_bytes=size, chunk_bytes=4096),
    "limiting": LimitingResource,
    "statistics": lambda upstream, _: StatisticsResource(upstream),
    "tracing": lambda upstream, _: TracingResource(upstream, os.devnull),
    "tracking": lambda upstream, _: TrackingResource(upstream),
    "failing": lambda upstream, _: FailingResource(upstream, 4, 2),
    "failure callback": lambda upstream, _: FailureCallbackResource(upstream, lambda _: False),
    "aligned": lambda upstream, _: AlignedResource(upstream, 64, 100),
    "fallback": lambda upstream, size: FallbackResource(
        LimitingResource(upstream, size // 4), UPSTREAMS["host"]()
    ),
    "guarded": lambda upstream, _: GuardedResource(upstream, quarantine_bytes=1000),
    "guard pages": lambda upstream, _: GuardPageResource(upstream, quarantine_bytes=1000),
    "binning": lambda upstream, size: BinningResource(
        upstream, [(200, SlabResource(UPSTREAMS["host"](), size, 256))]
    ),
    "callback": lambda upstream, _: CallbackResource(upstream.allocate, upstream.deallocate),
    "combining": lambda upstream, _: CombiningResource(upstream),
}

TOP_BYTES = 1 << 14


def stacked(names: Sequence[str]) -> Callable[[MemoryResource], MemoryResource]:
    """Build the layers, the lowest first; each has a quarter of the room of the one below.

    Raises (when it is called):
        InputError, OutOfMemoryError: The stack can never work, or has no room.
    """

    def make(upstream: MemoryResource) -> MemoryResource:
        for above, name in zip(range(len(names) - 1, -1, -1), names, strict=True):
            upstream = LAYERS[name](upstream, TOP_BYTES << above)
        return upstream

    return make
