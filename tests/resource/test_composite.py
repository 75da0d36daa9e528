import ctypes
import os

import pytest

from tightship.errors import InputError, OutOfMemoryError
from tightship.resource import CompositeResource, HostResource

MIB = 1 << 20


@pytest.fixture
def composite():
    return CompositeResource(HostResource(), 4 * MIB, slabs=[(16, 0.01), (64, 0.01), (256, 0.02)])


def part(composite, address):
    """Block size of the slab that an address lies in; `rest` where it lies in none."""
    return next((slab.block_bytes for slab in composite.slabs if slab.owns(address)), "rest")


@pytest.mark.parametrize(
    ("size", "alignment", "expected"),
    [(1, 1, 16), (16, 16, 16), (17, 16, 64), (64, 64, 64), (65, 16, 256), (256, 16, 256),
     (257, 16, "rest"), (16, 64, 64), (8, 256, 256), (8, 512, "rest"), (MIB, 4096, "rest")],
)  # fmt: skip
def test_a_request_goes_to_the_smallest_slab_that_serves_it(composite, size, alignment, expected):
    address = composite.allocate(size, alignment)
    assert part(composite, address) == expected
    assert address % alignment == 0
    composite.deallocate(address, size, alignment)
    assert composite.statistics().current_count == 0


def test_a_slab_that_is_used_up_spills_to_the_next_one_and_then_to_the_rest(composite):
    smallest, next_one = composite.slabs[:2]
    count = smallest.block_count + next_one.block_count + 10
    blocks = composite.allocate_many(count, 16).tolist()
    parts = [part(composite, block) for block in blocks]
    assert parts.count(16) == smallest.block_count
    assert parts.count(64) == next_one.block_count
    assert parts.count("rest") == 10
    for block in blocks:
        composite.deallocate(block, 16)
    assert composite.statistics().current_count == 0
    assert composite.free_list.free_count == 1


def test_what_came_back_is_served_first_unless_the_seeds_order_is_asked_for():
    served = {}
    for is_last in (False, True):
        made = CompositeResource(HostResource(), MIB, slabs=[], free_list_last=is_last)
        first = made.allocate(10_000)
        made.deallocate(first, 10_000)
        served[is_last] = made.allocate(10_000) == first
    assert served == {False: True, True: False}


@pytest.mark.parametrize("best_fit", [False, True])
@pytest.mark.parametrize("free_list_last", [False, True])
def test_all_of_the_rest_can_be_had_again_and_again(best_fit, free_list_last):
    made = CompositeResource(
        HostResource(), MIB, slabs=[], best_fit=best_fit, free_list_last=free_list_last
    )
    for size in (MIB // 2, 1000, MIB // 4, 32, MIB // 2):
        blocks = []
        while True:
            try:
                blocks.append(made.allocate(size))
            except OutOfMemoryError:
                break
        assert len(blocks) == (MIB - 64) // (size + -size % 32)
        for block in blocks:
            made.deallocate(block, size)


def test_an_address_of_no_part_is_refused(composite):
    other = HostResource()
    address = other.allocate(100)
    with pytest.raises(InputError, match="belong to this resource"):
        composite.deallocate(address, 100)
    other.deallocate(address, 100)


def test_a_refusal_says_what_is_in_use(composite):
    composite.allocate(1000)
    with pytest.raises(OutOfMemoryError, match=r"1024 of 4194304 bytes are in use"):
        composite.allocate(8 * MIB)


def test_touched_bytes_are_what_was_ever_in_blocks(composite):
    block = composite.allocate(100_000)
    composite.deallocate(block, 100_000)
    touched = composite.statistics().touched_bytes
    assert 100_000 <= touched < 110_000
    composite.deallocate(composite.allocate(50_000), 50_000)
    assert composite.statistics().touched_bytes == touched


def resident_bytes():
    with open("/proc/self/statm") as statm:
        return int(statm.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def test_trim_gives_back_the_pages_of_free_blocks_and_leaves_the_others():
    composite = CompositeResource(HostResource(), 256 * MIB)
    free, kept = composite.allocate(64 * MIB), composite.allocate(MIB)
    ctypes.memset(free, 1, 64 * MIB)
    ctypes.memset(kept, 2, MIB)
    composite.deallocate(free, 64 * MIB)
    before = resident_bytes()
    assert 63 * MIB < composite.trim() <= 64 * MIB
    assert resident_bytes() < before - 48 * MIB
    assert ctypes.string_at(kept, MIB) == b"\2" * MIB
    assert composite.allocate(64 * MIB) == free
    assert ctypes.string_at(free + MIB, MIB) == bytes(MIB)


def test_trim_leaves_pages_that_were_to_be_there_from_the_start():
    composite = CompositeResource(HostResource(is_filled=True), 4 * MIB)
    composite.deallocate(composite.allocate(MIB), MIB)
    assert composite.trim() == 0
