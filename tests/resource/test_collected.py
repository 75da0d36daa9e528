"""Resources that a Python function of theirs refers to are collected, whatever is between."""

import gc
import subprocess
import sys
import weakref

import pytest

from tightship.resource import (
    BinningResource,
    Block,
    BumpResource,
    CallbackResource,
    CompositeResource,
    FailureCallbackResource,
    FreeListResource,
    GuardedResource,
    GuardPageResource,
    HostResource,
    LimitingResource,
    MemoryResource,
    RegionResource,
    SlabResource,
    StatisticsResource,
    TrackingResource,
)

SIZE = 1 << 16

OVER = {
    "slab": lambda upstream: SlabResource(upstream, SIZE, 64),
    "slab whose bits are apart": lambda upstream: SlabResource(HostResource(), SIZE, 64, upstream),
    "bump": lambda upstream: BumpResource(upstream, SIZE, 1),
    "bump whose cursors are apart": lambda upstream: BumpResource(
        HostResource(), SIZE, 1, upstream
    ),
    "free list": FreeListResource,
    "composite": lambda upstream: CompositeResource(upstream, SIZE, slabs=[(64, 0.2)]),
    "bin": lambda upstream: BinningResource(HostResource(), [(64, upstream)]),
    "binning": lambda upstream: BinningResource(upstream, [(64, HostResource())]),
    "limiting": lambda upstream: LimitingResource(upstream, SIZE),
    "tracking": TrackingResource,
    "guarded": GuardedResource,
    "guard pages": GuardPageResource,
    "failure callback": lambda upstream: FailureCallbackResource(upstream, lambda _: False),
    "a stack": lambda upstream: StatisticsResource(
        FreeListResource(SlabResource(upstream, SIZE, 8192))
    ),
}

HOST = HostResource()


class Referrer:
    """Object that a function refers to, and that refers to a resource."""

    def __init__(self) -> None:
        self.held: MemoryResource | Block | None = None


def told_of(make):
    """A weak reference to an object that a resource's function refers to, and that has it."""
    referrer = Referrer()

    def deallocate(address, size, alignment, _=referrer):
        HOST.deallocate(address, size, alignment)

    referrer.held = make(CallbackResource(HOST.allocate, deallocate))
    return weakref.ref(referrer)


@pytest.mark.parametrize("over", OVER)
def test_a_resource_whose_function_refers_to_it_is_collected(over):
    seen = told_of(OVER[over])
    gc.collect()
    assert seen() is None


@pytest.mark.parametrize("over", ["slab", "free list", "composite", "guarded"])
def test_so_is_one_of_which_a_block_is_out(over):
    seen = told_of(lambda upstream: OVER[over](upstream).allocate_block(64))
    gc.collect()
    assert seen() is None


def test_a_region_of_an_object_that_refers_to_it_is_collected():
    class Buffer(bytearray):
        pass

    buffer = Buffer(SIZE)
    buffer.held = SlabResource(RegionResource(buffer), SIZE // 2, 64)
    seen = weakref.ref(buffer)
    del buffer
    gc.collect()
    assert seen() is None


@pytest.mark.parametrize("over", OVER)
def test_an_object_with_a_reference_is_not_collected(over):
    kept = []
    seen = told_of(lambda upstream: kept.append(OVER[over](upstream)))
    gc.collect()
    assert seen() is not None
    address = kept[0].allocate(64)
    kept[0].deallocate(address, 64)


def test_parts_with_other_references_are_not_counted_twice():
    composite = OVER["composite"](HostResource())
    parts = (*composite.slabs, composite.bump, composite.free_list)
    for _ in range(3):
        gc.collect()
        assert composite.slabs[0] is parts[0]
        assert all(gc.is_tracked(part) for part in parts)
    address = parts[0].allocate(64)
    parts[0].deallocate(address, 64)


TAKEN_APART = """
import gc, sys
from tightship.resource import CallbackResource, HostResource, SlabResource

def make(keep):
    host = HostResource()
    def deallocate(address, size, alignment):
        print(host.deallocate(address, size, alignment))
    def allocate(size, alignment):
        return host.allocate(size, alignment)
    keep(deallocate, SlabResource(CallbackResource(allocate, deallocate), 1 << 16, 64))

def on_the_function(function, slab):
    function.held = slab

sys.unraisablehook = lambda _: None
for generation in (0, 1, 2):
    make(on_the_function)
    gc.collect(generation)
print(sum(isinstance(each, SlabResource) for each in gc.get_objects()))
"""


def test_a_function_that_the_collector_has_begun_to_take_apart_is_not_called():
    done = subprocess.run(
        [sys.executable, "-c", TAKEN_APART], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "0"
