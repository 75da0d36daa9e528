import mmap
import os
import threading

import numpy as np
import pytest

from tightship.errors import InputError, OutOfMemoryError
from tightship.resource import BumpResource, HostResource, RegionResource, SlabResource


@pytest.fixture
def slab():
    return SlabResource(HostResource(), 1 << 18, 64)


def exhaust(slab):
    """Every block that is left, by single calls."""
    blocks = []
    while True:
        try:
            blocks.append(slab.allocate(slab.block_bytes, 8))
        except OutOfMemoryError:
            return blocks


def in_thread(work):
    thread = threading.Thread(target=work)
    thread.start()
    thread.join()


@pytest.mark.parametrize("block_bytes", [8, 16, 24, 48, 64, 100 * 8, 4096, 5000])
def test_every_block_is_given_once_and_none_is_lost(block_bytes):
    slab = SlabResource(HostResource(), 1 << 17, block_bytes)
    blocks = exhaust(slab)
    assert len(set(blocks)) == len(blocks) == slab.block_count
    for block in blocks:
        slab.deallocate(block, block_bytes, 8)
    assert sorted(exhaust(slab)) == sorted(blocks)


@pytest.mark.parametrize("size", [-8, 0, 4, 12, (1 << 56) + 8])
def test_a_block_size_that_is_no_multiple_of_eight_is_refused_with_the_number(size):
    with pytest.raises(InputError, match=rf"`block_bytes` \(= {size}\)"):
        SlabResource(HostResource(), 1 << 16, size)


def test_bits_lie_inside_the_region_or_apart():
    memory = np.frombuffer(mmap.mmap(-1, 1 << 16), np.uint8)
    inside = SlabResource(RegionResource(memory), memory.size, 64)
    blocks = exhaust(inside)
    first = memory.ctypes.data
    assert min(blocks) > first
    assert max(blocks) + 64 <= first + memory.size
    assert memory.any()
    del inside
    memory[:] = 0
    apart = SlabResource(RegionResource(memory), memory.size, 64, HostResource())
    assert apart.block_count >= (memory.size - 64) // 64 > len(blocks)
    exhaust(apart)
    assert not memory.any()


def test_what_another_thread_keeps_to_itself_is_within_reach(slab):
    """A thread's cell takes a whole word of blocks; they are called back when none is left."""
    held, may_end, has_taken = [], threading.Event(), threading.Event()

    def take():
        held.append(slab.allocate(64))
        has_taken.set()
        may_end.wait(60)

    thread = threading.Thread(target=take)
    thread.start()
    assert has_taken.wait(60)
    assert len(exhaust(slab)) == slab.block_count - 1
    may_end.set()
    thread.join()


def test_a_thread_that_has_ended_takes_nothing_with_it(slab):
    in_thread(lambda: slab.deallocate(slab.allocate(64), 64))
    assert slab.statistics().current_count == 0
    assert len(exhaust(slab)) == slab.block_count


def test_a_block_may_be_given_back_by_another_thread(slab):
    blocks = [slab.allocate(64) for _ in range(1000)]
    in_thread(lambda: [slab.deallocate(block, 64) for block in blocks])
    assert slab.statistics().current_count == 0
    assert len(exhaust(slab)) == slab.block_count


@pytest.mark.parametrize("between", [0, 1, 3, 200])
def test_a_block_that_is_given_back_twice_is_seen(slab, between):
    blocks = [slab.allocate(64) for _ in range(between + 1)]
    slab.deallocate(blocks[0], 64)
    for block in blocks[1:]:
        slab.deallocate(block, 64)
    with pytest.raises(InputError, match="already free"):
        slab.deallocate(blocks[0], 64)
    assert slab.statistics().current_count == 0
    assert len(set(exhaust(slab))) == slab.block_count


def test_a_false_block_is_refused_and_changes_nothing(slab):
    block = slab.allocate(64)
    for address, size, reason in [
        (block + 1, 64, "no block begins there"),
        (block + 32, 64, "no block begins there"),
        (block, 65, "Give the size that it was allocated with"),
        (block + (1 << 18), 64, "belong to this resource"),
    ]:
        with pytest.raises(InputError, match=reason):
            slab.deallocate(address, size)
    assert slab.statistics().current_count == 1
    slab.deallocate(block, 64)


def test_blocks_that_are_taken_together_are_whole_words(slab):
    blocks = slab.allocate_many(640, 64)
    assert len(set(blocks.tolist())) == 640
    slab.deallocate_many(blocks[::-1].copy(), 64)
    assert slab.statistics().current_count == 0


def test_a_slab_in_a_bump_leaves_its_neighbours_alone():
    bump = BumpResource(HostResource(), 1 << 18, 1)
    slabs = [SlabResource(bump, 1 << 14, size) for size in (16, 64, 256)]
    blocks = [exhaust(slab) for slab in slabs]
    for slab, own in zip(slabs, blocks, strict=True):
        assert [all(other.owns(b) for b in own) for other in slabs].count(True) == 1
        assert all(slab.owns(b + slab.block_bytes - 1) for b in own)


@pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork:DeprecationWarning")
def test_a_child_of_a_fork_has_a_slab_of_its_own(slab):
    stop = threading.Event()

    def churn():
        while not stop.is_set():
            slab.deallocate_many(slab.allocate_many(100, 64), 64)

    thread = threading.Thread(target=churn)
    thread.start()
    mine = slab.allocate(64)
    for _ in range(20):
        child = os.fork()
        if child == 0:
            slab.deallocate(mine, 64)
            left = len(exhaust(slab))
            os._exit(0 if slab.block_count - 300 <= left <= slab.block_count else 1)
        assert os.waitpid(child, 0)[1] == 0
    stop.set()
    thread.join()
    slab.deallocate(mine, 64)
    assert slab.statistics().current_count == 0


def test_a_thread_takes_over_what_an_ended_one_kept(slab):
    """The number of a thread that has ended goes to the next, with the blocks it kept."""
    for _ in range(20):
        held = []
        in_thread(lambda held=held: held.append(slab.allocate(64)))
        slab.deallocate(held[0], 64)
        assert slab.statistics().current_count == 0
    assert len(exhaust(slab)) == slab.block_count


def test_a_block_that_another_thread_gave_back_is_free_already(slab):
    block = slab.allocate(64)
    may_end, has_given = threading.Event(), threading.Event()

    def give():
        slab.deallocate(block, 64)
        has_given.set()
        may_end.wait(60)

    thread = threading.Thread(target=give)
    thread.start()
    assert has_given.wait(60)
    with pytest.raises(InputError, match="already free"):
        slab.deallocate(block, 64)
    may_end.set()
    thread.join()
    assert len(set(exhaust(slab))) == slab.block_count


def test_one_of_many_that_is_free_already_is_reported_and_the_others_come_back(slab):
    blocks = slab.allocate_many(192, 64)
    slab.deallocate(int(blocks[70]), 64)
    with pytest.raises(InputError, match="already free"):
        slab.deallocate_many(blocks, 64)
    assert slab.statistics().current_count == 0
    assert len(set(exhaust(slab))) == slab.block_count
