"""Pages whose size follows what is live: what is held, and blocks of outgrown stages."""

import ctypes
import random

import pytest
from benchmarks.growing_pages import random_columns

from tests.at_once import at_once
from tests.resource.virtual.gate import Gate
from tightship import _core
from tightship.errors import InputError, OutOfMemoryError
from tightship.resource.virtual import GrowingVirtualResource, HostDevice, StealingVirtualResource

KIB, MIB = 1 << 10, 1 << 20
STAGES = (
    *((4 * KIB, 16 * MIB), (16 * KIB, 96 * MIB), (64 * KIB, 192 * MIB), (128 * KIB, 384 * MIB)),
    *((256 * KIB, 768 * MIB), (512 * KIB, 1536 * MIB), (MIB, 3072 * MIB)),
)
"""Pages, and the live bytes up to which they are used; then those of 2 MiB."""


def make(**options):
    return GrowingVirtualResource(HostDevice(), **options)


def physical(resource):
    return resource.virtual_statistics().physical_bytes


def test_pages_are_larger_the_more_is_live() -> None:
    resource, live = make(), 0
    for page_bytes, most_bytes in STAGES:
        before = physical(resource)
        resource.allocate(1)
        assert physical(resource) - before == page_bytes
        live += 256
        resource.allocate(most_bytes - live)
        live = most_bytes
    before = physical(resource)
    resource.allocate(1)
    assert physical(resource) - before == 2 * MIB


def test_a_request_that_outgrows_a_stage_gets_the_pages_of_the_next() -> None:
    resource = make()
    resource.allocate(100 * MIB)
    assert physical(resource) == 100 * MIB
    assert resource.virtual_statistics().created_count == 100 * MIB // (64 * KIB)


@pytest.mark.parametrize("factor", [1, 6, 60])
def test_a_program_of_another_size_holds_hardly_more_than_is_live(factor) -> None:
    """No total lies badly between two stages; memory is not written to."""
    slots, sizes = random_columns(factor, 8, 20, 200, 3000)
    resource = make(idle_s=1e9)
    played = _core.replay(resource, slots, sizes * factor, part_count=0)
    held = resource.virtual_statistics().peak_physical_bytes
    assert held <= 1.03 * played.peak_live_bytes


def test_blocks_of_outgrown_stages_go_back_together() -> None:
    """Give back what lies side by side as one mapping, and leave none behind."""
    before = _core.process_mappings()[0]
    resource = make()
    blocks = [resource.allocate(10 * KIB) for _ in range(1000)]
    large = resource.allocate(300 * MIB)
    for address in blocks:
        resource.deallocate(address, 10 * KIB)
    assert physical(resource) <= 300 * MIB + 2 * MIB
    resource.deallocate(large, 300 * MIB)
    assert resource.trim() > 0
    assert physical(resource) == 0
    assert _core.process_mappings()[0] <= before + 2 * (len(STAGES) + 1)


def test_what_an_outgrown_stage_has_free_goes_back_before_more_is_made() -> None:
    resource = make()
    small = [resource.allocate(MIB) for _ in range(16)]
    for address in small[1:]:
        resource.deallocate(address, MIB)
    large = resource.allocate(30 * MIB)
    assert physical(resource) == 31 * MIB
    resource.deallocate(small[0], MIB)
    assert physical(resource) == 30 * MIB
    resource.deallocate(large, 30 * MIB)
    assert resource.trim() == 30 * MIB
    assert physical(resource) == 0


def random_calls(resource, seed, count, largest):
    """Allocate and free; return the most bytes that were live."""
    rng, live, now, peak = random.Random(seed), [], 0, 0
    for number in range(count):
        if live and rng.random() < 0.5:
            address, size, mark = live.pop(rng.randrange(len(live)))
            assert ctypes.string_at(address, 8) == mark
            resource.deallocate(address, size)
            now -= size
        else:
            size = int(2 ** rng.uniform(8, largest))
            address = resource.allocate(size)
            mark = number.to_bytes(8, "little")
            ctypes.memmove(address, mark, 8)
            live.append((address, size, mark))
            now += size
            peak = max(peak, now)
    for address, size, mark in live:
        assert ctypes.string_at(address, 8) == mark
        resource.deallocate(address, size)
    return peak


@pytest.mark.parametrize("largest", [18, 20, 22, 24])
@pytest.mark.parametrize("seed", range(3))
def test_a_random_program_holds_hardly_more_than_is_live(seed, largest) -> None:
    """Holds at most 3 % and eight pages more, and less than pages of 2 MiB; always the same."""
    resource = make(idle_s=1e9)
    peak = random_calls(resource, seed, 2000, largest)
    now = resource.virtual_statistics()
    assert now.peak_physical_bytes <= 1.03 * peak + 8 * 4 * KIB
    fixed = StealingVirtualResource(HostDevice(), idle_s=1e9)
    random_calls(fixed, seed, 2000, largest)
    assert now.peak_physical_bytes < fixed.virtual_statistics().peak_physical_bytes
    assert (now.requested_bytes, now.allocated_bytes) == (0, 0)


def test_a_budget_is_one_for_all_stages() -> None:
    resource = make(max_bytes=20 * MIB)
    small = resource.allocate(15 * MIB)
    with pytest.raises(OutOfMemoryError, match="at most 20971520"):
        resource.allocate(6 * MIB)
    rest = resource.allocate(5 * MIB)
    assert physical(resource) <= 20 * MIB
    resource.deallocate(small, 15 * MIB)
    resource.allocate(15 * MIB)
    assert physical(resource) <= 20 * MIB
    resource.deallocate(rest, 5 * MIB)


def test_misuse_is_refused_in_every_stage() -> None:
    resource = make()
    blocks = [(resource.allocate(size), size) for size in (MIB, 20 * MIB, 200 * MIB)]
    for address, size in blocks:
        assert resource.owns(address)
        assert resource.owns(address + size - 1)
        with pytest.raises(InputError, match=f"the block there has {size} bytes"):
            resource.deallocate(address, size - 1)
        resource.deallocate(address, size)
        with pytest.raises(InputError, match=r"free|belong"):
            resource.deallocate(address, size)
    with pytest.raises(InputError, match="does not belong"):
        resource.deallocate(4096, 1)


def test_work_of_a_stream_keeps_blocks_of_outgrown_stages() -> None:
    resource, gate = make(), Gate()
    stream = gate.stream()
    address = resource.allocate_on(10 * MIB, stream)
    resource.allocate(20 * MIB)
    resource.deallocate_on(address, 10 * MIB, stream)
    assert physical(resource) == 30 * MIB
    gate.is_open = True
    resource.trim()
    assert physical(resource) == 20 * MIB


def test_blocks_and_events_are_those_of_all_stages() -> None:
    resource = make()
    resource.record_events(4)
    sizes = [MIB, 20 * MIB, 200 * MIB]
    addresses = [resource.allocate(size) for size in sizes]
    live = [block for block in resource.blocks() if block[4] == "live"]
    assert sorted((block[1], block[3]) for block in live) == sorted(
        zip(addresses, sizes, strict=True)
    )
    events = resource.events()
    assert len(events) == 4
    assert events == sorted(events, key=lambda event: event[3])
    assert events[-1][:3] == ("allocated", addresses[-1], 200 * MIB)


def test_threads_grow_it_together() -> None:
    resource = make()
    peaks = at_once(lambda seed: random_calls(resource, seed, 400, 24), range(4))
    now = resource.virtual_statistics()
    assert (now.requested_bytes, resource.statistics().current_count) == (0, 0)
    assert now.physical_bytes == now.cached_bytes
    assert now.peak_allocated_bytes >= max(peaks)


def test_a_resource_that_is_gone_leaves_no_mapping() -> None:
    def mapped():
        return _core.process_mappings()[0]

    def use():
        random_calls(make(), 1, 500, 22)

    use()
    before = mapped()
    use()
    assert mapped() <= before + 2
