"""Misuses of memory: every one is seen by a checking stack."""

import ctypes
from concurrent.futures import ThreadPoolExecutor

import pytest

from tightship.errors import InputError
from tightship.resource import (
    BumpResource,
    CompositeResource,
    FreeListResource,
    GuardedResource,
    HostResource,
    LimitingResource,
    SlabResource,
    TrackingResource,
)

SIZES = ((1, 1), (24, 8), (64, 64), (1000, 16), (4096, 256), (70_000, 4096))

STACKS = {
    "free_list": lambda: TrackingResource(
        GuardedResource(FreeListResource(HostResource()), quarantine_bytes=1 << 20)
    ),
    "composite": lambda: TrackingResource(
        GuardedResource(CompositeResource(HostResource(), 1 << 22), quarantine_bytes=1 << 20)
    ),
    "host": lambda: GuardedResource(TrackingResource(HostResource()), quarantine_bytes=1 << 20),
}


def give(resource, address, size, alignment):
    with pytest.raises(InputError) as error:
        resource.deallocate(address, size, alignment)
    return str(error.value)


def spoil(address):
    """Write a byte that is not the one which is there."""
    ctypes.memset(address, ctypes.string_at(address, 1)[0] ^ 0xFF, 1)


def freed_twice(resource, address, size, alignment):
    resource.deallocate(address, size, alignment)
    return give(resource, address, size, alignment)


def overrun(resource, address, size, alignment):
    spoil(address + size)
    return give(resource, address, size, alignment)


def underrun(resource, address, size, alignment):
    spoil(address - 1)
    return give(resource, address, size, alignment)


MISUSES = {
    "freed twice": freed_twice,
    "one byte after it": overrun,
    "one byte before it": underrun,
    "a size too large": lambda r, address, size, power: give(r, address, size + 1, power),
    "another alignment": lambda r, address, size, power: give(r, address, size, 2 * power),
    "an address before it": lambda r, address, size, power: give(r, address - 1, size, power),
    "an address after it": lambda r, address, size, power: give(r, address + size, size, power),
}


@pytest.mark.parametrize("stack", STACKS)
@pytest.mark.parametrize(("size", "alignment"), SIZES)
@pytest.mark.parametrize("misuse", MISUSES)
def test_a_misuse_is_seen_when_it_happens(misuse, size, alignment, stack):
    resource = STACKS[stack]()
    address = resource.allocate(size, alignment)
    assert "Cannot deallocate" in MISUSES[misuse](resource, address, size, alignment)


def elsewhere(call, *arguments):
    """Call on a thread of its own, which is gone afterwards."""
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(call, *arguments).result()


@pytest.mark.parametrize("stack", ["composite", "slab"])
@pytest.mark.parametrize("is_first_here", [True, False])
@pytest.mark.parametrize("others", [0, 1, 70])
def test_a_block_that_another_thread_gave_back_is_not_given_back_twice(
    stack, is_first_here, others
):
    slab = SlabResource(HostResource(), 1 << 20, 256)
    resource = TrackingResource(GuardedResource(slab, quarantine_bytes=0))
    if stack == "composite":
        resource = STACKS[stack]()
    blocks = [resource.allocate(100) for _ in range(1 + others)]
    orders = (lambda call, *given: call(*given), elsewhere)
    first, second = orders if is_first_here else reversed(orders)
    for block in reversed(blocks):
        first(resource.deallocate, block, 100)
    assert "Cannot deallocate" in second(give, resource, blocks[0], 100, 16)
    assert resource.statistics().current_count == 0


def test_a_freed_block_goes_to_one_thread_even_if_threads_free_it_twice():
    resource = STACKS["composite"]()
    block = resource.allocate(100)
    elsewhere(resource.deallocate, block, 100)
    give(resource, block, 100, 16)
    resource.trim()
    blocks = [resource.allocate(100) for _ in range(200)]
    blocks += elsewhere(lambda: [resource.allocate(100) for _ in range(200)])
    assert len(set(blocks)) == 400


@pytest.fixture
def guarded():
    return GuardedResource(FreeListResource(HostResource()), quarantine_bytes=4096)


@pytest.mark.parametrize(("size", "alignment"), SIZES[:4])
@pytest.mark.parametrize("place", ["first", "last", "before", "after"])
def test_what_is_written_after_the_end_is_found_among_the_waiting(guarded, size, alignment, place):
    address = guarded.allocate(size, alignment)
    guarded.deallocate(address, size, alignment)
    assert guarded.faults() == []
    offset = {"first": 0, "last": size - 1, "before": -1, "after": size}[place]
    spoil(address + offset)
    (fault,) = guarded.faults()
    assert f"Block 1 of {size} bytes at {address:#x} was written to after it was given" in fault


def test_what_is_written_after_the_end_is_found_when_it_leaves_the_quarantine(guarded):
    address = guarded.allocate(100)
    guarded.deallocate(address, 100)
    ctypes.memset(address, 1, 1)
    guarded.trim()
    assert guarded.quarantined_bytes == 0
    assert len(guarded.faults()) == 1


def test_a_damaged_block_stays_live_and_is_found(guarded):
    address = guarded.allocate(100)
    kept = ctypes.string_at(address + 100, 1)
    ctypes.memset(address + 100, kept[0] ^ 1, 1)
    assert "bytes beside it were written to" in give(guarded, address, 100, 16)
    assert guarded.owns(address)
    assert "was written to beside its bytes" in guarded.faults()[0]
    ctypes.memset(address + 100, kept[0], 1)
    guarded.deallocate(address, 100)
    assert guarded.faults() == []


def test_what_the_layer_below_refuses_stays_tracked():
    resource = STACKS["free_list"]()
    address = resource.allocate(100)
    (before,) = resource.live()
    spoil(address + 100)
    give(resource, address, 100, 16)
    (after,) = resource.live()
    assert (after.address, after.number) == (before.address, before.number)
    assert resource.live_bytes == 100
    spoil(address + 100)
    resource.deallocate(address, 100)
    assert resource.live() == []


def test_a_block_waits_until_others_push_it_out(guarded):
    address = guarded.allocate(2048)
    guarded.deallocate(address, 2048)
    others = [guarded.allocate(2048) for _ in range(8)]
    assert address not in others
    for other in others:
        guarded.deallocate(other, 2048)
    assert guarded.quarantined_bytes == 4096
    assert address in {guarded.allocate(2048) for _ in range(9)}


def test_what_waits_is_given_up_where_memory_runs_short():
    limited = LimitingResource(HostResource(), 1000)
    guarded = GuardedResource(limited, quarantine_bytes=1 << 20)
    for _ in range(3):
        guarded.deallocate(guarded.allocate(600), 600)
    assert guarded.quarantined_bytes == 600


def test_an_upstream_that_frees_nothing_is_refused():
    with pytest.raises(InputError, match=r"takes no block back.*`FreeListResource`"):
        GuardedResource(BumpResource(HostResource(), 4096, 1))


def test_an_upstream_without_room_for_canaries_is_refused():
    with pytest.raises(InputError, match=r"never gives more than 64 bytes.*take 64"):
        GuardedResource(SlabResource(HostResource(), 4096, 64))
