"""Costs of the published allocator's rules that the default policy avoids (D14 to D19)."""

import random

from tests.resource.virtual.gate import Gate
from tightship.resource.virtual import HostDevice, SharedDevice, StealingVirtualResource

PAGE = 1 << 16


def make(device, **options):
    return StealingVirtualResource(device, page_bytes=PAGE, **options)


def test_d14_no_page_has_two_addresses_while_work_goes_on():
    resource, gate = make(SharedDevice(), patience_s=0), Gate()
    stream = gate.stream()
    address = resource.allocate_on(4 * PAGE, stream)
    resource.deallocate_on(address, 4 * PAGE, stream)
    resource.allocate_on(6 * PAGE, stream)
    now = resource.virtual_statistics()
    assert sum(block[2] for block in resource.blocks()) == now.physical_bytes
    assert (now.moved_count, now.waiting_count) == (0, 0)


def test_d15_a_small_block_takes_a_granule_and_not_a_page():
    resource = make(HostDevice())
    for _ in range(PAGE // 256):
        resource.allocate(4)
    assert resource.virtual_statistics().physical_bytes == PAGE


def test_d16_addresses_that_lost_their_pages_are_used_again():
    resource = make(HostDevice())
    highest = 0
    for _ in range(50):
        blocks = [resource.allocate(2 * PAGE) for _ in range(8)]
        for block in blocks[::2]:
            resource.deallocate(block, 2 * PAGE)
        large = resource.allocate(8 * PAGE)
        highest = max(highest, large)
        resource.deallocate(large, 8 * PAGE)
        for block in blocks[1::2]:
            resource.deallocate(block, 2 * PAGE)
    assert highest - min(blocks) <= 32 * PAGE


def test_d18_it_gives_back_keeps_a_budget_and_knows_its_peaks():
    resource = make(HostDevice(), max_bytes=64 * PAGE)
    resource.deallocate(resource.allocate(64 * PAGE), 64 * PAGE)
    assert resource.trim() == 64 * PAGE
    now = resource.virtual_statistics()
    assert (now.physical_bytes, now.peak_physical_bytes) == (0, 64 * PAGE)
    assert now.peak_allocated_bytes == 64 * PAGE


def test_d19_a_loop_of_equal_steps_moves_nothing_after_the_first():
    resource, choice = make(HostDevice()), random.Random(1)
    sizes = [choice.randrange(1, 40 * PAGE) for _ in range(30)]

    def step():
        blocks = [(resource.allocate(size), size) for size in sizes]
        random.Random(2).shuffle(blocks)
        for block in blocks:
            resource.deallocate(*block)

    step()
    before = resource.virtual_statistics()
    for _ in range(20):
        step()
    now = resource.virtual_statistics()
    assert now.created_count == before.created_count
    assert now.remap_count - before.remap_count <= 0.02 * 20 * len(sizes)
