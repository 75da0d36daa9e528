"""Requests that one resource refuses go to a second; each block goes back to its own."""

import ctypes
import gc
import threading
import weakref

import numpy as np
import pytest

import tightship.plug
from tests.at_once import at_once
from tightship.errors import InputError, OutOfMemoryError
from tightship.resource import (
    BumpResource,
    CallbackResource,
    CompositeResource,
    FailingResource,
    FallbackResource,
    FreeListResource,
    GuardedResource,
    HostResource,
    LimitingResource,
    SlabResource,
    StatisticsResource,
)
from tightship.resource.virtual import virtual_resource

LIMIT = 1 << 14


def counted(limit=LIMIT):
    """A resource with little room and one with much, both counted, and a fallback over them."""
    first = StatisticsResource(LimitingResource(FreeListResource(HostResource()), limit))
    second = StatisticsResource(FreeListResource(HostResource()))
    return FallbackResource(first, second), first, second


@pytest.mark.parametrize("power", range(13))
def test_each_block_goes_back_to_the_one_that_gave_it(power):
    resource, first, second = counted()
    blocks = []
    for size in (1, 31, 32, 33, 100, 4095, 4096, 4097, LIMIT, LIMIT + 1, 1 << 20, 3, 1 << 12, 7):
        blocks.append((resource.allocate(size, 1 << power), size))
        assert blocks[-1][0] % (1 << power) == 0
    assert first.counters().current_count > 0
    assert second.counters().current_count == resource.second_count > 0
    for address, size in blocks[::2] + blocks[1::2]:
        resource.deallocate(address, size, 1 << power)
    for each in (first, second):
        assert (each.counters().current_count, each.counters().current_bytes) == (0, 0)
    assert resource.second_count == 0


def test_both_may_have_the_same_upstream():
    host = HostResource()
    first = LimitingResource(host, 4096)
    second = FreeListResource(host, chunk_bytes=4096)
    resource = FallbackResource(first, second)
    blocks = [resource.allocate(4096) for _ in range(4)]
    for block in reversed(blocks):
        resource.deallocate(block, 4096)
    assert first.current_bytes == 0
    assert second.statistics().current_count == 0
    assert resource.trim() == 3 * 4096
    assert host.statistics().current_count == 0


def test_the_first_one_serves_again_when_it_has_room():
    resource, first, second = counted()
    held = resource.allocate(LIMIT)
    other = resource.allocate(100)
    resource.deallocate(held, LIMIT)
    again = resource.allocate(100)
    assert (first.counters().current_count, second.counters().current_count) == (1, 1)
    resource.deallocate(other, 100)
    resource.deallocate(again, 100)
    assert (first.counters().current_count, second.counters().current_count) == (0, 0)


@pytest.mark.parametrize(
    ("change", "size", "alignment", "words"),
    [
        (0, 101, 16, "Give the size that it was allocated with"),
        (0, 100, 32, "not allocated with alignment 32"),
        (16, 84, 16, "no block begins"),
        (1 << 40, 100, 16, "belong to this resource"),
    ],
)
def test_a_block_of_the_second_is_checked(change, size, alignment, words):
    resource, _, second = counted(limit=1)
    address = resource.allocate(100)
    with pytest.raises(InputError, match=words):
        resource.deallocate(address + change, size, alignment)
    assert second.counters().current_count == 1
    resource.deallocate(address, 100)
    with pytest.raises(InputError, match="already free"):
        resource.deallocate(address, 100)


def test_a_damaged_block_of_the_second_stays_live():
    second = GuardedResource(FreeListResource(HostResource()))
    resource = FallbackResource(LimitingResource(HostResource(), 1), second)
    block = resource.allocate(8)
    ctypes.memset(block + 8, 1, 1)
    with pytest.raises(InputError, match="written to"):
        resource.deallocate(block, 8)
    assert resource.second_count == 1


def test_what_neither_has_is_refused_with_both_reasons():
    resource = FallbackResource(
        LimitingResource(HostResource(), 1000), LimitingResource(HostResource(), 2000)
    )
    with pytest.raises(OutOfMemoryError, match=r"limit of 1000.*limit of 2000") as refused:
        resource.allocate(3000)
    assert refused.value.available_bytes == 3000
    assert resource.largest_bytes == 2000
    assert resource.statistics().current_count == 0


def test_many_blocks_are_of_both():
    resource = FallbackResource(SlabResource(HostResource(), 8192, 64), HostResource())
    count = resource.upstream.block_count + 10
    blocks = resource.allocate_many(count, 64)
    assert resource.second_count == 10
    assert len(set(blocks.tolist())) == count
    resource.deallocate_many(blocks, 64)
    assert resource.statistics().current_count == resource.second_count == 0


def test_one_resource_twice_is_refused():
    host = HostResource()
    with pytest.raises(InputError, match="same resource"):
        FallbackResource(host, host)


def test_a_bump_that_is_used_up_is_followed():
    resource = FallbackResource(BumpResource(HostResource(), 4096, 1), HostResource())
    assert not resource.supports_free
    blocks = [resource.allocate(1024) for _ in range(6)]
    assert resource.second_count >= 2
    for block in blocks:
        resource.deallocate(block, 1024)
    assert resource.second_count == 0


def test_nested_ones_find_back():
    parts = [StatisticsResource(LimitingResource(HostResource(), 3000 << i)) for i in range(4)]
    resource = FallbackResource(
        FallbackResource(parts[0], parts[1]), FallbackResource(parts[2], parts[3])
    )
    blocks = [resource.allocate(1000) for _ in range(3 + 6 + 12 + 5)]
    assert [part.counters().current_count for part in parts] == [3, 6, 12, 5]
    for block in blocks[::-1]:
        resource.deallocate(block, 1000)
    assert [part.counters().current_count for part in parts] == [0] * 4


def test_threads_give_back_each_others_blocks():
    resource, first, second = counted(limit=1 << 16)
    lists = [[] for _ in range(4)]
    barrier = threading.Barrier(4)

    def work(number):
        for turn in range(60):
            mine = lists[number]
            mine.extend((resource.allocate(size), size) for size in range(50 + turn, 3000, 97))
            barrier.wait(60)
            for address, size in lists[(number + 1) % 4]:
                resource.deallocate(address, size)
            barrier.wait(60)
            mine.clear()

    at_once(work, range(4))
    assert second.counters().total_count > 0
    assert first.counters().total_count > 0
    assert (first.counters().current_bytes, second.counters().current_bytes) == (0, 0)


def test_numpy_falls_back():
    resource = FallbackResource(CompositeResource(HostResource(), 1 << 20), virtual_resource())
    with tightship.plug.numpy.use(resource):
        arrays = [np.full(size, size % 251, np.uint8) for size in (10, 1 << 19, 1 << 22, 100)]
    assert resource.second_count == 1
    assert all((array == array.size % 251).all() for array in arrays)
    arrays.clear()
    assert resource.statistics().current_count == 0


def test_every_refusal_of_the_second_leaves_nothing():
    for number in range(1, 6):
        second = FailingResource(FreeListResource(HostResource()), number)
        resource = FallbackResource(LimitingResource(HostResource(), 1), second)
        with pytest.raises(OutOfMemoryError):
            resource.allocate_many(5, 100)
        assert resource.second_count == resource.statistics().current_count == 0


def test_a_cycle_through_a_function_of_either_is_collected():
    class Owner:
        def allocate(self, *_):
            return None

        def deallocate(self, *_):
            pass

    for place in (0, 1):
        owner = Owner()
        both = [HostResource(), HostResource()]
        both[place] = CallbackResource(owner.allocate, owner.deallocate)
        owner.resource = FallbackResource(*both)
        gone = weakref.ref(owner)
        del owner, both
        gc.collect()
        assert gone() is None
