"""P1 to P9: what the published implementation of the seed gets wrong, one test for each."""

import ctypes
import time

import pytest

from tightship.errors import InputError
from tightship.resource import (
    BumpResource,
    CompositeResource,
    FreeListResource,
    HostResource,
    SlabResource,
)
from tightship.resource.settings import settings_from

KIB = 1 << 10


def test_p1_a_slab_owns_its_own_blocks_and_no_byte_more():
    bump = BumpResource(HostResource(), 256 * KIB, 1)
    slabs = [SlabResource(bump, 4 * KIB, 8) for _ in range(8)]
    for slab in slabs:
        blocks = slab.allocate_many(slab.block_count, 8, 8).tolist()
        first, stop = min(blocks), max(blocks) + 8
        assert stop - first == slab.capacity_bytes
        assert slab.owns(first)
        assert slab.owns(stop - 1)
        assert not slab.owns(first - 1)
        assert not slab.owns(stop)
        assert not any(other.owns(first) for other in slabs if other is not slab)


def test_p2_a_spilled_block_goes_back_without_a_change_to_anothers_data():
    composite = CompositeResource(HostResource(), 256 * KIB, slabs=[(8, 0.05), (16, 0.05)])
    blocks = composite.allocate_many(6000, 8, 8).tolist()
    for block in blocks:
        ctypes.memset(block, 0xFF, 8)
    spilled = [b for b in blocks if not composite.slabs[0].owns(b)]
    assert any(composite.slabs[1].owns(b) for b in spilled)
    assert any(composite.bump.owns(b) for b in spilled)
    for block in spilled:
        composite.deallocate(block, 8, 8)
    kept = [b for b in blocks if composite.slabs[0].owns(b)]
    assert all(ctypes.string_at(b, 8) == b"\xff" * 8 for b in kept)
    for block in kept:
        composite.deallocate(block, 8, 8)
    assert composite.statistics().current_count == 0
    assert composite.free_list.free_count == 1


def test_p3_what_a_request_leaves_of_a_block_is_not_lost():
    host = HostResource()
    free = FreeListResource(host)
    free.deallocate(host.allocate(1024 * KIB), 1024 * KIB)
    free.deallocate(free.allocate(32), 32)
    assert free.free_bytes == 1024 * KIB
    assert free.owns(free.allocate(KIB))
    assert host.statistics().current_bytes == 1024 * KIB


def test_p4_a_slab_that_is_nearly_full_is_as_fast_as_an_empty_one():
    def nanoseconds(slab):
        start = time.thread_time_ns()
        for _ in range(2000):
            slab.deallocate(slab.allocate(64), 64)
        return time.thread_time_ns() - start

    empty, full = (SlabResource(HostResource(), 16 << 20, 64) for _ in range(2))
    full.allocate_many(full.block_count * 99 // 100, 64)
    assert min(nanoseconds(full) for _ in range(5)) < 5 * min(nanoseconds(empty) for _ in range(5))


@pytest.mark.slow
def test_p5_a_free_list_with_many_blocks_is_as_fast_as_one_with_few():
    def filled(count):
        free = FreeListResource(BumpResource(HostResource(), count * 2048, 1))
        sizes = [64 + index * 7919 % 960 for index in range(2 * count)]
        blocks = [(free.allocate(size), size) for size in sizes]
        for block, size in blocks[::2]:
            free.deallocate(block, size)
        return free

    def nanoseconds(free):
        start = time.thread_time_ns()
        for size in range(64, 1064):
            free.deallocate(free.allocate(size), size)
        return time.thread_time_ns() - start

    few, many = filled(100), filled(50_000)
    assert many.free_count >= 50_000
    assert min(nanoseconds(many) for _ in range(5)) < 5 * min(nanoseconds(few) for _ in range(5))


@pytest.mark.parametrize(
    "make",
    [
        lambda: SlabResource(HostResource(), 64 * KIB, 64),
        lambda: FreeListResource(BumpResource(HostResource(), 64 * KIB, 1)),
        lambda: CompositeResource(HostResource(), 256 * KIB, slabs=[(64, 0.2)]),
    ],
    ids=["slab", "free_list", "composite"],
)
def test_p6_a_block_that_is_given_back_twice_is_seen(make):
    resource = make()
    for size in (64, 64):
        block = resource.allocate(size)
        resource.deallocate(block, size)
        with pytest.raises(InputError, match="already free"):
            resource.deallocate(block, size)
    assert resource.statistics().current_count == 0


def test_p7_bits_are_apart_from_blocks():
    slab = SlabResource(HostResource(), 64 * KIB, 64, HostResource())
    blocks = slab.allocate_many(slab.block_count, 64)
    assert len(blocks) == 1024
    for block in blocks.tolist():
        ctypes.memset(block, 0xFF, 64)
    assert slab.statistics().current_count == 1024
    slab.deallocate_many(blocks, 64)
    assert slab.statistics().current_count == 0


def test_p8_a_program_that_gives_back_what_it_takes_does_not_march_through_memory():
    composite = CompositeResource(HostResource(), 16 << 20)
    before = None
    for _ in range(500):
        blocks = [(composite.allocate(size), size) for size in (40_000, 3_000, 100_000, 70)]
        for block, size in blocks:
            composite.deallocate(block, size)
        before = before or composite.statistics().touched_bytes
    assert composite.statistics().touched_bytes == before < 1 << 20


def test_p9_the_division_is_set_by_the_environment():
    settings = settings_from({"TIGHTSHIP_RESOURCE_SLABS": "32:25%"})
    composite = CompositeResource(HostResource(), 1 << 20, slabs=settings.slabs)
    assert [slab.block_bytes for slab in composite.slabs] == [32]
    assert composite.slabs[0].capacity_bytes == pytest.approx(1 << 18, rel=0.05)
