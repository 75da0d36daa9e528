import random

import pytest

from tightship.errors import InputError, OutOfMemoryError
from tightship.resource import (
    BumpResource,
    FreeListResource,
    HostResource,
    LimitingResource,
    SegmentResource,
)

MIB = 1 << 20


@pytest.fixture(params=["best", "first"])
def whole(request):
    """A list of one free block of a MiB, and the bump it is of, which has no more."""
    bump = BumpResource(HostResource(), MIB + 64, 1)
    made = FreeListResource(bump, best_fit=request.param == "best")
    made.deallocate(made.allocate(MIB, 64), MIB, 64)
    return made


def test_what_is_left_of_a_block_serves_others(whole):
    blocks = [whole.allocate(MIB // 8) for _ in range(8)]
    assert whole.free_bytes == whole.free_count == 0
    for block in blocks[::2] + blocks[1::2]:
        whole.deallocate(block, MIB // 8)
    assert (whole.free_bytes, whole.free_count) == (MIB, 1)
    assert whole.allocate(MIB) == min(blocks)


@pytest.mark.parametrize("seed", range(5))
def test_nothing_is_lost_by_cutting_and_joining(whole, seed):
    chance = random.Random(seed)
    live = []
    for _ in range(2000):
        if live and chance.random() < 0.5:
            whole.deallocate(*live.pop(chance.randrange(len(live))))
            continue
        size, alignment = chance.randrange(1, 20_000), 1 << chance.randrange(12)
        try:
            live.append((whole.allocate(size, alignment), size, alignment))
        except OutOfMemoryError:
            assert whole.free_bytes < MIB
        statistics = whole.statistics()
        assert statistics.current_bytes + whole.free_bytes == MIB
    for block in live:
        whole.deallocate(*block)
    assert (whole.free_bytes, whole.free_count) == (MIB, 1)


def test_the_best_fit_is_the_smallest_block_that_is_large_enough():
    free = FreeListResource(BumpResource(HostResource(), 4 * MIB, 1))
    sizes = [4096, 1024, 2 * MIB, 96, 65_536, 1 << 20, 320]
    kept = [(free.allocate(size), size, free.allocate(32)) for size in sizes]
    for block, size, _ in kept:
        free.deallocate(block, size)
    by_size = {size: block for block, size, _ in kept}
    for asked, fits in [(100, 320), (90, 96), (2000, 4096), (70_000, 1 << 20), (MIB + 1, 2 * MIB)]:
        assert free.allocate(asked) == by_size[fits]


def test_the_first_fit_is_what_came_back_last_and_is_large_enough():
    free = FreeListResource(BumpResource(HostResource(), MIB, 1), best_fit=False)
    kept = [(free.allocate(size), size, free.allocate(32)) for size in (4096, 8192, 128)]
    for block, size, _ in kept:
        free.deallocate(block, size)
    assert free.allocate(100) == kept[2][0]
    assert free.allocate(100) == kept[1][0]


def test_blocks_of_one_upstream_block_join_and_go_back_when_trimmed():
    host = HostResource()
    free = FreeListResource(host, chunk_bytes=MIB)
    blocks = [free.allocate(1000) for _ in range(100)]
    assert host.statistics().current_bytes == MIB
    for block in blocks[1:]:
        free.deallocate(block, 1000)
    assert free.trim() == 0
    free.deallocate(blocks[0], 1000)
    assert free.trim() == MIB
    assert host.statistics().current_bytes == free.statistics().reserved_bytes == 0


@pytest.mark.parametrize("size", [32, 1000, 4096])
def test_a_block_of_the_upstream_is_taken_in(size):
    host = HostResource()
    free = FreeListResource(host)
    block = host.allocate(size)
    free.deallocate(block, size)
    assert free.free_bytes == size // 32 * 32
    assert free.allocate(32) == block
    del free
    assert host.statistics().current_bytes == 0


@pytest.mark.parametrize("between", [0, 1, 5])
def test_a_block_that_is_given_back_twice_is_seen(whole, between):
    blocks = [whole.allocate(96) for _ in range(between + 1)]
    for block in blocks:
        whole.deallocate(block, 96)
    with pytest.raises(InputError, match="already free"):
        whole.deallocate(blocks[0], 96)
    assert whole.free_bytes == MIB


def test_a_false_block_is_refused_and_changes_nothing(whole):
    blocks = [whole.allocate(96) for _ in range(3)]
    whole.deallocate(blocks[2], 96)
    for address, size, reason in [
        (blocks[0] + 8, 96, "no block begins there"),
        (blocks[1], 128, "Give the size that it was allocated with"),
        (blocks[0], 2 * MIB, "Give the size that it was allocated with"),
    ]:
        with pytest.raises(InputError, match=reason):
            whole.deallocate(address, size)
    assert whole.statistics().current_count == 2


def test_the_seeds_order_asks_upstream_first():
    bump = BumpResource(HostResource(), 64 * 1024, 1)
    free = FreeListResource(bump, upstream_first=True)
    first = free.allocate(1024)
    free.deallocate(first, 1024)
    assert free.allocate(1024) != first
    while True:
        try:
            block = free.allocate(1024)
        except OutOfMemoryError:
            break
        if block == first:
            break
    assert block == first


def test_a_refusal_says_what_is_free_and_what_upstream_says(whole):
    with pytest.raises(OutOfMemoryError, match=r"no free block holds it, of 1048576 bytes"):
        whole.allocate(MIB + 1)


def test_blocks_of_shared_memory_are_a_list_like_any_other():
    free = FreeListResource(SegmentResource())
    block = free.allocate(5000)
    free.deallocate(block, 5000)
    assert free.allocate(5000) == block


@pytest.mark.parametrize("best_fit", [True, False])
@pytest.mark.parametrize("alignment", [16, 4096])
def test_growing_requests_hold_no_more_than_the_largest(best_fit, alignment):
    bump = BumpResource(HostResource(), 64 * MIB, 1)
    free = FreeListResource(bump, best_fit=best_fit)
    for size in range(4096, MIB, 40_000):
        free.deallocate(free.allocate(size, alignment), size, alignment)
    assert bump.statistics().touched_bytes <= MIB + alignment
    assert free.free_count == 1


def test_a_block_in_use_at_the_end_is_not_lengthened():
    bump = BumpResource(HostResource(), 4 * MIB, 1)
    free = FreeListResource(bump)
    first, last = free.allocate(MIB), free.allocate(MIB)
    free.deallocate(first, MIB)
    assert free.allocate(2 * MIB - 64) == last + MIB


def test_what_others_took_of_the_bump_stays_theirs():
    bump = BumpResource(HostResource(), 4 * MIB, 1)
    free = FreeListResource(bump)
    ours = free.allocate(MIB)
    theirs = bump.allocate(64)
    free.deallocate(ours, MIB)
    assert free.allocate(2 * MIB) == theirs + 64


def test_an_end_that_cannot_be_lengthened_stays_whole():
    free = FreeListResource(BumpResource(HostResource(), 2 * MIB, 1))
    free.deallocate(free.allocate(MIB), MIB)
    with pytest.raises(OutOfMemoryError):
        free.allocate(3 * MIB)
    assert (free.free_bytes, free.free_count) == (MIB, 1)


def test_the_block_that_came_back_last_is_out_again_and_then_joins(whole):
    blocks = [whole.allocate(4096) for _ in range(3)]
    whole.deallocate(blocks[1], 4096)
    assert whole.allocate(4096) == blocks[1]
    whole.deallocate(blocks[1], 4096)
    with pytest.raises(InputError, match="already free"):
        whole.deallocate(blocks[1], 4096)
    for block in (blocks[0], blocks[2]):
        whole.deallocate(block, 4096)
    assert (whole.free_bytes, whole.free_count) == (MIB, 1)


def test_the_block_that_came_back_last_is_none_for_a_coarser_alignment(whole):
    blocks = [whole.allocate(96) for _ in range(4)]
    block = next(each for each in blocks if each % 64)
    whole.deallocate(block, 96)
    assert whole.allocate(96, 64) % 64 == 0


def test_free_chunks_that_are_too_small_make_room_for_a_larger_one():
    limited = LimitingResource(HostResource(), 4 * MIB)
    made = FreeListResource(limited)
    small, held = made.allocate(2 * MIB), made.allocate(MIB)
    made.deallocate(small, 2 * MIB)
    larger = made.allocate(3 * MIB)
    with pytest.raises(OutOfMemoryError):
        made.allocate(1)
    made.deallocate(larger, 3 * MIB)
    with pytest.raises(OutOfMemoryError):
        made.allocate(4 * MIB)  # more than what is free and what upstream has: nothing goes back
    assert made.statistics().reserved_bytes == limited.current_bytes == 4 * MIB
    made.deallocate(held, MIB)
