"""The allocators of others that replays compare with: glibc's, and PyTorch's rules."""

import subprocess
import sys

import hypothesis.strategies as st
import pytest
from hypothesis import given, settings

from tightship._core import CachingSimulation, MallocResource
from tightship.errors import InputError, OutOfMemoryError

KIB, MIB = 1 << 10, 1 << 20


@pytest.mark.parametrize(
    ("size", "segment"),
    [
        (1, 2 * MIB),
        (MIB, 2 * MIB),
        (MIB + 1, 20 * MIB),
        (10 * MIB - 512, 20 * MIB),
        (10 * MIB, 10 * MIB),
        (11 * MIB + 1, 12 * MIB),
    ],
)
def test_a_size_has_the_segment_that_pytorch_gives_it(size, segment):
    simulation = CachingSimulation()
    simulation.allocate(size)
    assert simulation.statistics().reserved_bytes == segment


def test_segments_are_kept_and_serve_again():
    simulation = CachingSimulation()
    for _ in range(3):
        address = simulation.allocate(11 * MIB)
        simulation.deallocate(address, 11 * MIB)
    assert simulation.statistics().reserved_bytes == 12 * MIB
    assert simulation.statistics().current_count == 0


def test_the_rest_of_a_large_segment_serves_only_where_it_is_above_a_mebibyte():
    simulation = CachingSimulation()
    for _ in range(2):
        simulation.allocate(9 * MIB)
    assert simulation.statistics().reserved_bytes == 20 * MIB
    assert simulation.statistics().current_bytes == 18 * MIB
    simulation.allocate(3 * MIB)
    assert simulation.statistics().reserved_bytes == 40 * MIB


@pytest.mark.parametrize(("asked", "given"), [(19 * MIB, 20 * MIB), (19 * MIB - 512,) * 2])
def test_a_block_whose_rest_is_too_small_to_keep_is_given_whole(asked, given):
    simulation = CachingSimulation()
    simulation.deallocate(simulation.allocate(20 * MIB), 20 * MIB)
    simulation.allocate(asked)
    assert simulation.statistics().current_bytes == given


def test_small_blocks_share_a_segment_in_units_of_512():
    simulation = CachingSimulation()
    blocks = [simulation.allocate(1) for _ in range(4096)]
    assert simulation.statistics().reserved_bytes == 2 * MIB
    assert {block % 512 for block in blocks} == {0}
    simulation.allocate(1)
    assert simulation.statistics().reserved_bytes == 4 * MIB


def test_the_smallest_block_that_is_large_enough_is_taken():
    simulation = CachingSimulation()
    large, _, small, _ = (simulation.allocate(size * KIB) for size in (100, 1, 50, 1))
    simulation.deallocate(large, 100 * KIB)
    simulation.deallocate(small, 50 * KIB)
    assert simulation.allocate(40 * KIB) == small
    assert simulation.allocate(60 * KIB) == large


@settings(deadline=None, max_examples=40)
@given(st.permutations(range(8)), st.integers(1, 200 * KIB))
def test_neighbours_join_in_whatever_order_they_come_back(order, size):
    simulation = CachingSimulation()
    blocks = [simulation.allocate(size) for _ in range(8)]
    for index in order:
        simulation.deallocate(blocks[index], size)
    assert simulation.allocate(MIB) == min(blocks)
    assert simulation.statistics().reserved_bytes == 2 * MIB


def test_segments_that_touch_stay_apart():
    simulation = CachingSimulation()
    blocks = [simulation.allocate(12 * MIB) for _ in range(4)]
    for block in blocks:
        simulation.deallocate(block, 12 * MIB)
    simulation.allocate(24 * MIB)
    assert simulation.statistics().reserved_bytes == 72 * MIB


def test_the_simulation_refuses_what_was_not_given():
    simulation = CachingSimulation()
    address = simulation.allocate(100)
    assert simulation.owns(address)
    assert not simulation.owns(1)
    with pytest.raises(InputError, match="Give the size that it was allocated with"):
        simulation.deallocate(address, 513)
    with pytest.raises(InputError, match="belong to this resource"):
        simulation.deallocate(address + 1, 100)
    simulation.deallocate(address, 100)
    with pytest.raises(OutOfMemoryError):
        simulation.allocate(100, 1024)


def test_malloc_gives_aligned_blocks_and_counts_them():
    resource = MallocResource()
    address = resource.allocate(1000, 4096)
    assert address % 4096 == 0
    assert resource.statistics().current_bytes == 1000
    assert resource.statistics().current_count == 1
    resource.deallocate(address, 1000, 4096)
    assert resource.statistics().current_count == 0


GROWTH = """
from tightship._core import MallocResource

resource = MallocResource()
blocks = [resource.allocate(100_000) for _ in range(100)]
print(resource.statistics().touched_bytes)
for block in blocks[:-1]:
    resource.deallocate(block, 100_000)
print(resource.statistics().touched_bytes, resource.statistics().current_bytes)
"""


def test_malloc_holds_what_the_heap_of_a_new_process_has_grown_by():
    done = subprocess.run(
        [sys.executable, "-c", GROWTH], capture_output=True, text=True, check=True
    )
    full, pinned, live = map(int, done.stdout.split())
    assert 100 * 100_000 <= full <= 100 * 100_000 + 4 * MIB
    assert pinned >= 9_000_000
    assert live == 100_000


def test_malloc_refuses_what_no_system_has():
    with pytest.raises(OutOfMemoryError, match="C library has no more"):
        MallocResource().allocate(1 << 55)
