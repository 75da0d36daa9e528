"""Requirements of memory resources over every upstream; a line in a table adds a resource."""

import ctypes
import functools
import gc
import mmap
import os
import random
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import hypothesis.strategies as st
import numpy as np
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from tightship.errors import OutOfMemoryError
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
    FileResource,
    FreeListResource,
    GuardedResource,
    GuardPageResource,
    HostResource,
    LimitingResource,
    MemoryResource,
    PythonResource,
    RegionResource,
    SegmentResource,
    SlabResource,
    StatisticsResource,
    TracingResource,
    TrackingResource,
    pool,
)

REGION_BYTES = 1 << 16


class OverInPython(PythonResource):
    """A resource of Python that takes its blocks from another."""

    def __init__(self, upstream: MemoryResource) -> None:
        super().__init__()
        self.upstream = upstream

    def do_allocate(self, size_bytes: int, alignment: int) -> int:
        return self.upstream.allocate(size_bytes, alignment)

    def do_deallocate(self, address: int, size_bytes: int, alignment: int) -> None:
        self.upstream.deallocate(address, size_bytes, alignment)


FOLDER = "/dev/shm" if Path("/dev/shm").is_dir() else tempfile.gettempdir()
"""Folder of mapped files; in memory if possible, because that is faster."""

UPSTREAMS: dict[str, Callable[[], MemoryResource]] = {
    "host": HostResource,
    "segment": SegmentResource,
    "region": lambda: RegionResource(mmap.mmap(-1, 2 * REGION_BYTES)),
    "bump": lambda: BumpResource(HostResource(), 4 * REGION_BYTES, 2),
    "slab": lambda: SlabResource(HostResource(), 4 * REGION_BYTES, REGION_BYTES),
}

RESOURCES: dict[str, Callable[[MemoryResource], MemoryResource]] = {
    "bump": lambda upstream: BumpResource(upstream, REGION_BYTES, 3),
    "bump_apart": lambda upstream: BumpResource(upstream, REGION_BYTES, 3, HostResource()),
    "slab": lambda upstream: SlabResource(upstream, REGION_BYTES, 256),
    "slab_odd": lambda upstream: SlabResource(upstream, REGION_BYTES, 1000),
    "free_list": FreeListResource,
    "free_list_chunks": lambda upstream: FreeListResource(upstream, chunk_bytes=REGION_BYTES // 4),
    "free_list_first": lambda upstream: FreeListResource(upstream, best_fit=False),
    "free_list_last": lambda upstream: FreeListResource(upstream, upstream_first=True),
    "composite": lambda upstream: CompositeResource(
        upstream, REGION_BYTES, slabs=[(64, 0.2), (256, 0.3)]
    ),
    "composite_seed": lambda upstream: CompositeResource(
        upstream, REGION_BYTES, slabs=[(16, 0.1), (512, 0.6)], best_fit=False, free_list_last=True
    ),
    "pool": lambda upstream: pool(upstream, initial_bytes=4096, max_bytes=REGION_BYTES),
    "limiting": lambda upstream: LimitingResource(upstream, REGION_BYTES // 8),
    "statistics": StatisticsResource,
    "tracing": lambda upstream: TracingResource(upstream, os.devnull),
    "tracking": TrackingResource,
    "tracking_stacks": lambda upstream: TrackingResource(upstream, stacks=True),
    "failing": lambda upstream: FailingResource(upstream, 7, 3),
    "failure_callback": lambda upstream: FailureCallbackResource(upstream, lambda _: False),
    "aligned": lambda upstream: AlignedResource(FreeListResource(upstream), 512, 100),
    "guarded": lambda upstream: GuardedResource(FreeListResource(upstream), quarantine_bytes=4096),
    "guard_pages": lambda upstream: GuardPageResource(
        FreeListResource(upstream), quarantine_bytes=2048
    ),
    "binning": lambda upstream: BinningResource(
        FreeListResource(upstream),
        [(64, SlabResource(HostResource(), 4096, 64)), (600, HostResource())],
    ),
    "fallback": lambda upstream: FallbackResource(
        LimitingResource(FreeListResource(upstream), REGION_BYTES // 16), HostResource()
    ),
    "fallback_within": lambda upstream: FallbackResource(
        SlabResource(HostResource(), REGION_BYTES // 4, 128), FreeListResource(upstream)
    ),
    "fallback_nested": lambda upstream: FallbackResource(
        FallbackResource(
            LimitingResource(HostResource(), 4096), SlabResource(HostResource(), 4096, 64)
        ),
        FallbackResource(
            FailingResource(FreeListResource(upstream), 3, 5), FreeListResource(HostResource())
        ),
    ),
    "callback": lambda upstream: CallbackResource(upstream.allocate, upstream.deallocate),
    "python": OverInPython,
    "checking": lambda upstream: TrackingResource(
        GuardedResource(
            LimitingResource(FreeListResource(upstream), REGION_BYTES), quarantine_bytes=1024
        )
    ),
    "combining": lambda upstream: CombiningResource(FreeListResource(upstream)),
    "counted_limit": lambda upstream: StatisticsResource(
        LimitingResource(TrackingResource(upstream), REGION_BYTES)
    ),
    "slab_apart": lambda upstream: SlabResource(upstream, REGION_BYTES, 512, HostResource()),
}

ROOTS: dict[str, Callable[[], MemoryResource]] = {
    "host": HostResource,
    "region": lambda: RegionResource(mmap.mmap(-1, REGION_BYTES)),
    "segment": SegmentResource,
    "file": lambda: FileResource(FOLDER),
    "filled": lambda: HostResource(is_filled=True, is_locked=True, node=0),
}


@dataclass(frozen=True, slots=True, eq=False)
class Live:
    """A block that is out, and the byte it is filled with."""

    address: int
    size_bytes: int
    alignment: int
    filling: int

    def check(self) -> None:
        assert ctypes.string_at(self.address, self.size_bytes) == bytes([self.filling]) * (
            self.size_bytes
        )


class Conformance(RuleBasedStateMachine):
    """Any calls in any order, beside a map of which bytes are whose.

    REQUIRES: `make` gives a resource that nothing was asked of.
    """

    def __init__(self, make: Callable[[], MemoryResource]) -> None:
        super().__init__()
        self.begin(make)

    def begin(self, make: Callable[[], MemoryResource]) -> None:
        self.resource = make()
        self.live: list[Live] = []
        self.given = 0
        self.before = self.resource.statistics()
        assert (self.before.current_bytes, self.before.current_count) == (0, 0)

    def _take(self, address: int, size_bytes: int, alignment: int) -> None:
        assert address % alignment == 0
        assert self.resource.owns(address)
        assert self.resource.owns(address + size_bytes - 1)
        stop = address + size_bytes
        for block in self.live:
            assert stop <= block.address or block.address + block.size_bytes <= address
        self.given += 1
        block = Live(address, size_bytes, alignment, self.given % 251 + 1)
        ctypes.memset(address, block.filling, size_bytes)
        self.live.append(block)

    def _check_refusal(self, refused: OutOfMemoryError, size: int, before: int) -> None:
        assert refused.requested_bytes == size
        assert str(size) in str(refused)
        assert self.resource.statistics().current_bytes == before

    @rule(size=st.integers(1, 1200), power=st.integers(0, 8))
    def allocate(self, size: int, power: int) -> None:
        before = self.resource.statistics().current_bytes
        try:
            address = self.resource.allocate(size, 1 << power)
        except OutOfMemoryError as error:
            self._check_refusal(error, size, before)
        else:
            self._take(address, size, 1 << power)

    @rule(count=st.integers(0, 70), size=st.integers(1, 1200), power=st.integers(0, 5))
    def allocate_many(self, count: int, size: int, power: int) -> None:
        held = len(self.live) if self.resource.supports_free else None
        try:
            addresses = self.resource.allocate_many(count, size, 1 << power)
        except OutOfMemoryError:
            if held is None:
                self.given = self.resource.statistics().current_count
        else:
            assert len(addresses) == count
            for address in addresses.tolist():
                self._take(address, size, 1 << power)

    @precondition(lambda self: self.live)
    @rule(choice=st.randoms(use_true_random=False))
    def deallocate(self, choice: random.Random) -> None:
        block = self.live.pop(choice.randrange(len(self.live)))
        block.check()
        self.resource.deallocate(block.address, block.size_bytes, block.alignment)

    @precondition(lambda self: self.live)
    @rule(choice=st.randoms(use_true_random=False))
    def deallocate_many(self, choice: random.Random) -> None:
        like = choice.choice(self.live)
        alike = [
            b for b in self.live if (b.size_bytes, b.alignment) == (like.size_bytes, like.alignment)
        ]
        choice.shuffle(alike)
        for block in alike:
            block.check()
            self.live.remove(block)
        addresses = np.array([block.address for block in alike], np.uint64)
        self.resource.deallocate_many(addresses, like.size_bytes, like.alignment)

    @invariant()
    def statistics_are_exact(self) -> None:
        now = self.resource.statistics()
        expected = len(self.live) if self.resource.supports_free else self.given
        assert now.current_count == expected
        assert now.reserved_bytes >= now.current_bytes >= sum(b.size_bytes for b in self.live)

    def teardown(self) -> None:
        for block in self.live:
            block.check()
            self.resource.deallocate(block.address, block.size_bytes, block.alignment)
        if self.resource.supports_free:
            assert self.resource.statistics().current_count == 0
            assert self.resource.statistics().current_bytes == 0


class OverUpstream(Conformance):
    """Conformance over an upstream, which is whole again when the resource ends."""

    def __init__(
        self,
        make: Callable[[MemoryResource], MemoryResource],
        make_upstream: Callable[[], MemoryResource],
    ) -> None:
        self.upstream = make_upstream()
        self.unused = self.upstream.statistics()
        super().__init__(functools.partial(make, self.upstream))

    def teardown(self) -> None:
        super().teardown()
        del self.resource
        gc.collect(0)
        if self.upstream.supports_free:
            assert self.upstream.statistics().current_bytes == self.unused.current_bytes
            assert self.upstream.statistics().current_count == self.unused.current_count
