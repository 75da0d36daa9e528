import itertools

import pytest

from tests.at_once import at_once
from tightship.errors import InputError, OutOfMemoryError
from tightship.resource import BumpResource, HostResource, RegionResource, scope


@pytest.fixture
def bump():
    return BumpResource(HostResource(), 1 << 18, 4)


def exhaust(bump, size):
    blocks = []
    while True:
        try:
            blocks.append(bump.allocate(size))
        except OutOfMemoryError:
            return blocks


def test_every_part_is_used_up_from_one_thread(bump):
    blocks = exhaust(bump, 64)
    assert len(set(blocks)) == len(blocks) == 4 * (bump.capacity_bytes // 4 // 64)
    assert bump.statistics().current_bytes == len(blocks) * 64


def test_a_block_may_be_as_large_as_all_parts_together(bump):
    block = bump.allocate(bump.capacity_bytes)
    assert bump.owns(block)
    assert bump.owns(block + bump.capacity_bytes - 1)
    with pytest.raises(OutOfMemoryError):
        bump.allocate(1)
    assert bump.statistics().current_count == 1


@pytest.mark.parametrize("parts", [2, 3, 7, 16])
def test_a_block_that_fits_no_part_lies_over_several(parts):
    bump = BumpResource(HostResource(), 1 << 18, parts)
    part_bytes = bump.capacity_bytes // parts
    size = 2 * part_bytes - 1024
    large = bump.allocate(size)
    rest = exhaust(bump, 16)
    assert len(set(rest)) == len(rest) == (bump.capacity_bytes - size) // 16
    assert all(block + 16 <= large or large + size <= block for block in rest)
    assert bump.statistics().current_count == len(rest) + 1


def test_deallocating_takes_nothing_back(bump):
    block = bump.allocate(100)
    bump.deallocate(block, 100)
    assert not bump.supports_free
    assert bump.allocate(100) != block
    assert bump.statistics().current_count == 2


def test_a_reset_ends_every_block(bump):
    before = exhaust(bump, 1000)
    touched = bump.statistics().touched_bytes
    bump.reset()
    assert bump.statistics().current_bytes == bump.statistics().current_count == 0
    assert bump.statistics().touched_bytes == touched
    assert sorted(exhaust(bump, 1000)) == sorted(before)


def test_scopes_end_their_blocks_and_nest(bump):
    bump.allocate(10)
    with scope(bump):
        bump.allocate(20)
        with scope(bump) as inner:
            assert inner is bump
            exhaust(bump, 500)
        assert bump.statistics().current_count == 2
    assert bump.statistics().current_count == 1


def test_a_scope_ends_its_blocks_when_it_raises(bump):
    with pytest.raises(ZeroDivisionError), scope(bump):
        raise ZeroDivisionError(bump.allocate(10))
    assert bump.statistics().current_count == 0


def test_a_mark_that_is_gone_is_refused(bump):
    outer = bump.mark()
    inner = bump.mark()
    bump.rewind(outer)
    bump.rewind(outer)
    with pytest.raises(InputError, match=f"Mark {inner} is gone"):
        bump.rewind(inner)
    bump.reset()
    with pytest.raises(InputError, match=f"Mark {outer} is gone"):
        bump.rewind(outer)


@pytest.mark.parametrize("size", [1, 63, 64 * 4])
def test_a_region_without_room_for_the_cursors_is_refused_with_the_number(size):
    with pytest.raises(InputError, match=rf"`size_bytes` \(= {size}\) has no room for 4 parts"):
        BumpResource(HostResource(), size, 4)


def test_cursors_lie_inside_the_region_or_apart():
    memory = bytearray(1 << 16)
    apart = BumpResource(RegionResource(memory), 60_000, 4, HostResource())
    exhaust(apart, 16)
    assert not any(memory)
    del apart
    inside = BumpResource(RegionResource(memory), 60_000, 4)
    inside.allocate(16)
    assert any(memory)


def test_many_blocks_are_apart_and_aligned(bump):
    blocks = sorted(bump.allocate_many(1000, 40, 64).tolist())
    assert all(block % 64 == 0 for block in blocks)
    assert all(b - a >= 40 for a, b in itertools.pairwise(blocks))
    assert bump.statistics().current_count == 1000


def test_threads_get_blocks_of_their_own(bump):
    found = [[] for _ in range(4)]

    def work(mine):
        mine.extend(bump.allocate(32) for _ in range(1000))

    at_once(work, found)
    assert len({block for mine in found for block in mine}) == 4000
    assert bump.statistics().current_count == 4000
