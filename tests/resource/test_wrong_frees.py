"""Wrong frees that every resource refuses: another size or alignment, no block, twice."""

import ctypes
import itertools
import mmap
import os
import re
from collections.abc import Callable, Iterator

import pytest

from tests.resource.conformance import RESOURCES, ROOTS
from tightship.errors import InputError
from tightship.resource import (
    BinningResource,
    BumpResource,
    CompositeResource,
    FreeListResource,
    HostResource,
    LimitingResource,
    MemoryResource,
    SegmentResource,
    SlabResource,
    StatisticsResource,
)
from tightship.resource.virtual import virtual_resource

SIZES = (1, 8, 31, 32, 33, 64, 95, 96, 97, 128, 129, 255, 256, 257, 300, 1000, 1024, 4095, 4096)
SIZES += (4097, 8192)
MIB = 1 << 20
EIGHT = 8
"""An alignment that blocks of every resource have."""

KINDS: dict[str, Callable[[], MemoryResource]] = {
    **{name: lambda make=make: make(HostResource()) for name, make in RESOURCES.items()
       if not name.startswith("bump") and name != "failing"},
    **{f"root {name}": make for name, make in ROOTS.items()},
    "composite default": lambda: CompositeResource(HostResource(), 16 * MIB),
    "free list over a bump": lambda: FreeListResource(BumpResource(HostResource(), MIB, 1)),
    "slab of large blocks": lambda: SlabResource(HostResource(), 64 * MIB, 100_000),
    "stealing": virtual_resource,
    "chunks": lambda: virtual_resource(policy="chunked"),
}  # fmt: skip


def refused(resource: MemoryResource, address: int, size: int, alignment: int = EIGHT) -> str:
    """Return the error of a free that is refused and changes nothing."""
    before = resource.statistics()
    with pytest.raises(InputError) as caught:
        resource.deallocate(address, size, alignment)
    now = resource.statistics()
    assert now.current_bytes == before.current_bytes
    assert now.current_count == before.current_count
    assert now.reserved_bytes == before.reserved_bytes
    assert f"{size} bytes at {address:#x}:" in str(caught.value)
    return str(caught.value)


def blocks(resource: MemoryResource, sizes: tuple[int, ...]) -> Iterator[tuple[int, int]]:
    """Each size that the resource gives, with a block of it."""
    for size in sizes:
        try:
            yield resource.allocate(size, EIGHT), size
        except MemoryError:
            continue


@pytest.fixture(params=KINDS)
def resource(request):
    return KINDS[request.param]()


def test_every_other_size_is_refused_and_the_right_one_goes_back(resource):
    seen = 0
    for address, size in blocks(resource, SIZES):
        ctypes.memset(address, 0x5A, size)
        for other in SIZES:
            if other != size:
                assert f"the block there has {size} bytes" in refused(resource, address, other)
                seen += 1
        assert ctypes.string_at(address, size) == b"\x5a" * size
        resource.deallocate(address, size, EIGHT)
        if resource.supports_free and resource.statistics().reserved_bytes:
            refused(resource, address, size)
    assert seen >= len(SIZES) - 1
    assert resource.statistics().current_count == 0
    assert resource.statistics().current_bytes == 0


def test_every_pair_of_small_sizes():
    composite = CompositeResource(HostResource(), 16 * MIB)
    free = FreeListResource(HostResource(), chunk_bytes=MIB)
    for resource, size in itertools.product((composite, free), range(1, 140)):
        address = resource.allocate(size, EIGHT)
        for other in itertools.chain(range(1, size), range(size + 1, 140)):
            assert f"has {size} bytes" in refused(resource, address, other)
        resource.deallocate(address, size, EIGHT)
    assert composite.statistics().current_count == free.statistics().current_count == 0


def test_a_neighbour_is_not_given_away(resource):
    """The first defect: blocks a and b side by side, and a given back with the size of both."""
    held = list(blocks(resource, (256, 256, 256)))
    for number, (address, size) in enumerate(held):
        ctypes.memset(address, number, size)
    refused(resource, held[0][0], 512)
    again = list(blocks(resource, (512, 256)))
    for address, size in again:
        ctypes.memset(address, 0xEE, size)
    for number, (address, size) in enumerate(held):
        assert ctypes.string_at(address, size) == bytes([number]) * size
    for address, size in held + again:
        resource.deallocate(address, size, EIGHT)


def test_an_address_within_a_block_is_refused(resource):
    address, size = next(blocks(resource, (4096, 200)))
    for offset in {1, 8, 16, 32, 64, size // 2 // 32 * 32, size - 1}:
        for given in (1, 32, size - offset, size):
            refused(resource, address + offset, given, 1)
    resource.deallocate(address, size, EIGHT)
    assert resource.statistics().current_count == 0


def test_an_alignment_that_the_block_has_not_is_refused(resource):
    address, size = next(blocks(resource, (64,)))
    coarser = 2 * (address & -address)
    assert f"alignment {coarser}." in refused(resource, address, size, coarser)
    resource.deallocate(address, size, EIGHT)


def test_foreign_addresses_are_refused(resource):
    address, size = next(blocks(resource, (256,)))
    other = mmap.mmap(-1, mmap.PAGESIZE)
    foreign = ctypes.addressof(ctypes.c_char.from_buffer(other))
    for each in (foreign, 16, (1 << 64) - 16):
        assert "does not belong to this resource" in refused(resource, each, size)
    resource.deallocate(address, size, EIGHT)


def large_sizes():
    return [2**power + change for power in (16, 17, 20, 21, 22, 24) for change in (-1, 0, 1)]


@pytest.mark.parametrize("over", [HostResource, lambda: BumpResource(HostResource(), 256 * MIB, 1)])
def test_large_blocks_keep_their_sizes(over):
    free = FreeListResource(over())
    slab = SlabResource(HostResource(), 80 * MIB, 16 * MIB + 64)
    for resource, size in itertools.product((free, slab), large_sizes()):
        address = resource.allocate(size, EIGHT)
        for other in large_sizes():
            if other != size:
                assert f"has {size} bytes" in refused(resource, address, other)
        resource.deallocate(address, size, EIGHT)
        assert resource.statistics().current_count == 0


def test_sizes_beyond_any_address_space_are_refused():
    free = FreeListResource(HostResource())
    address = free.allocate(64)
    for size in (2**49 - 1, 2**49, 2**49 + 64, 2**55 + 64, 2**56):
        refused(free, address, size)
    free.deallocate(address, 64)


def test_deep_in_a_free_block_nothing_is_taken_back():
    free = FreeListResource(BumpResource(HostResource(), 8 * MIB, 1))
    address = free.allocate(4 * MIB)
    kept = free.allocate(64)
    free.deallocate(address, 4 * MIB)
    for offset in (64 * 1024, MIB, 3 * MIB + 32):
        assert "already free" in refused(free, address + offset, 4096)
    assert free.free_bytes == 4 * MIB
    free.deallocate(kept, 64)


def test_what_the_bump_has_not_given_is_not_taken_in():
    composite = CompositeResource(HostResource(), 16 * MIB)
    address = composite.allocate(8192)
    for offset in (8192, MIB):
        assert "no block begins there" in refused(composite, address + offset, 4096)
    composite.deallocate(address, 8192)


def test_a_bump_refuses_what_reaches_beyond_its_blocks():
    bump = BumpResource(HostResource(), MIB, 1)
    first, second = bump.allocate(100), bump.allocate(50)
    end = second + 64 - first
    assert f"at most {end} bytes" in refused(bump, first, end + 1)
    refused(bump, second + 64, 16)
    refused(bump, first + 8, 16, 1)
    refused(bump, second, 50, 2 * (second & -second))
    bump.deallocate(first, 100)
    assert bump.statistics().current_count == 2


def test_blocks_of_the_upstream_are_taken_in_with_their_size_only():
    host = HostResource()
    free = FreeListResource(host)
    address = host.allocate(1000)
    for size in (992, 999, 1001, 4096):
        assert "has 1000 bytes" in refused(free, address, size)
    free.deallocate(address, 1000)
    assert "already free" in refused(free, address, 1000)
    assert free.trim() == 1000
    assert host.statistics().current_bytes == 0


def test_what_is_taken_in_does_not_count_as_a_block_given_back():
    host = HostResource()
    free = FreeListResource(host)
    own = free.allocate(4096)
    free.deallocate(host.allocate(4096), 4096)
    assert free.statistics().current_count == 1
    assert free.statistics().current_bytes == 4096
    free.deallocate(own, 4096)


def test_counts_above_a_resource_stay_right():
    limited = LimitingResource(CompositeResource(HostResource(), 16 * MIB), MIB)
    counted = StatisticsResource(limited)
    for size in (40, 5000):
        address = counted.allocate(size)
        for other in (1, size - 1, size + 1, 2**40):
            refused(counted, address, other)
        assert counted.counters().current_bytes == size
        counted.deallocate(address, size)
    address = counted.allocate(MIB)
    counted.deallocate(address, MIB)
    assert counted.counters().current_bytes == 0


def test_many_name_the_block_and_take_the_others():
    host = HostResource()
    slab, composite = SlabResource(host, MIB, 256), CompositeResource(host, 16 * MIB)
    for resource in (slab, composite, FreeListResource(host), HostResource()):
        given = resource.allocate_many(200, 40)
        other = resource.allocate(41)
        given[77] = other
        text = re.escape(f"200 blocks of 40 bytes; at {other:#x}, the block there has 41 bytes")
        with pytest.raises(InputError, match=text):
            resource.deallocate_many(given, 40)
        assert resource.statistics().current_count == 2
        resource.deallocate(other, 41)


def test_a_word_of_a_slab_with_one_other_size():
    slab = SlabResource(HostResource(), MIB, 64)
    given = slab.allocate_many(64, 64)
    slab.deallocate(int(given[5]), 64)
    odd = slab.allocate(63)
    assert odd == given[5]
    with pytest.raises(InputError, match=f"at {odd:#x}, the block there has 63 bytes"):
        slab.deallocate_many(given, 64)
    assert slab.statistics().current_count == 1
    with pytest.raises(InputError, match="already free"):
        slab.deallocate_many(given, 63)
    assert slab.statistics().current_count == 0


def test_a_word_of_a_slab_that_was_asked_for_at_once_comes_back_one_by_one():
    slab = SlabResource(HostResource(), MIB, 64)
    given = [int(address) for address in slab.allocate_many(128, 40)]
    for address in (given[0], given[63], given[100]):
        assert "has 40 bytes" in refused(slab, address, 41)
    assert slab.allocate_block(64).address not in given
    for count, address in enumerate(given, start=1):
        slab.deallocate(address, 40)
        assert "already free" in refused(slab, address, 40)
        if count < len(given):
            assert "has 40 bytes" in refused(slab, given[count], 64)
    again = slab.allocate_many(128, 24)
    assert len(set(again)) == 128
    slab.deallocate_many(again, 24)
    with pytest.raises(InputError, match="already free"):
        slab.deallocate_many(again, 24)
    assert slab.statistics().current_count == 0


def test_a_word_that_was_asked_for_at_once_is_of_one_size():
    slab = SlabResource(HostResource(), MIB, 64)
    given = slab.allocate_many(64, 40)
    for size in (39, 41, 64):
        with pytest.raises(InputError, match=f"at {int(given[0]):#x}, the block there has 40"):
            slab.deallocate_many(given, size)
        assert slab.statistics().current_count == 64
    slab.deallocate_many(given, 40)
    assert slab.statistics().current_count == 0


def test_a_block_finds_its_bin_by_its_address():
    binned = BinningResource(
        FreeListResource(HostResource()), [(64, SlabResource(HostResource(), 4096, 64))]
    )
    small, coarse = binned.allocate(64), binned.allocate(64, 4096)
    assert "has 64 bytes" in refused(binned, small, 65)
    assert "has 64 bytes" in refused(binned, coarse, 65)
    binned.deallocate(small, 64)
    binned.deallocate(coarse, 64)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="forks")
def test_in_shared_memory_a_slab_takes_any_size_that_fits():
    slab = SlabResource(SegmentResource(), MIB, 64)
    address = slab.allocate(40)
    refused(slab, address, 65)
    slab.deallocate(address, 64)
    refused(slab, address, 40)
