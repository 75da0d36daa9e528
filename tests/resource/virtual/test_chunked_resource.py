"""The virtual caching allocator, case by case, and what its publication did wrong."""

import ctypes
import threading

import pytest
from hypothesis import HealthCheck, settings
from hypothesis.stateful import run_state_machine_as_test

from tests.resource.conformance import Conformance
from tests.resource.virtual.devices import DEVICES
from tests.resource.virtual.gate import AwaitedGate, Gate
from tightship.errors import InputError, OutOfMemoryError
from tightship.resource.virtual import (
    ChunkedVirtualResource,
    FailingDevice,
    HostDevice,
    HostStream,
    SharedDevice,
)

CHUNK = 1 << 16


@pytest.fixture(params=DEVICES)
def device(request):
    return DEVICES[request.param]()


@pytest.fixture
def resource(device):
    return ChunkedVirtualResource(device, CHUNK)


def given_back(resource, *counts):
    """Blocks of so many chunks, all back in the cache."""
    addresses = [resource.allocate(count * CHUNK) for count in counts]
    for address, count in zip(addresses, counts, strict=True):
        resource.deallocate(address, count * CHUNK)
    return addresses


def test_it_conforms_over_every_device(device):
    run_state_machine_as_test(
        lambda: Conformance(lambda: ChunkedVirtualResource(device, 4096)),
        settings=settings(
            max_examples=6,
            stateful_step_count=25,
            deadline=None,
            suppress_health_check=list(HealthCheck),
        ),
    )


def test_case_1_makes_whole_chunks(resource):
    resource.allocate(CHUNK + 1)
    now = resource.virtual_statistics()
    assert (now.requested_bytes, now.allocated_bytes, now.created_count) == (
        CHUNK + 1,
        2 * CHUNK,
        2,
    )


def test_case_2_gives_the_same_addresses_again(resource):
    (address,) = given_back(resource, 3)
    assert resource.allocate(2 * CHUNK + 1) == address
    now = resource.virtual_statistics()
    assert (now.exact_count, now.moved_count, now.created_count) == (1, 0, 3)


def test_case_3_makes_the_largest_smaller_one_longer(resource):
    given_back(resource, 1, 2)
    resource.allocate(4 * CHUNK)
    now = resource.virtual_statistics()
    assert (now.created_count, now.cached_bytes, now.moved_count >= 1) == (4, 0, True)


def test_case_3_takes_no_more_than_it_needs(resource):
    given_back(resource, 1, 3)
    resource.allocate(3 * CHUNK + 1)
    assert resource.virtual_statistics().cached_bytes == 0
    assert resource.virtual_statistics().physical_bytes == 4 * CHUNK


def test_case_4_takes_the_smallest_larger_one_and_keeps_the_rest(resource):
    larger, _ = given_back(resource, 3, 5)
    resource.allocate(2 * CHUNK)
    now = resource.virtual_statistics()
    assert (now.created_count, now.moved_count, now.cached_bytes) == (8, 2, 6 * CHUNK)
    assert resource.allocate(5 * CHUNK) != larger


def test_a_chunk_takes_its_contents_to_no_other_block_in_use(resource):
    held = resource.allocate(2 * CHUNK)
    ctypes.memset(held, 7, 2 * CHUNK)
    given_back(resource, 4)
    other = resource.allocate(3 * CHUNK)
    ctypes.memset(other, 9, 3 * CHUNK)
    assert ctypes.string_at(held, 2 * CHUNK) == bytes([7]) * 2 * CHUNK


def test_addresses_of_a_robbed_block_wait_for_its_work():
    resource, gate = ChunkedVirtualResource(SharedDevice(), CHUNK), Gate()
    stream = gate.stream()
    robbed = resource.allocate_on(3 * CHUNK, stream)
    resource.deallocate_on(robbed, 3 * CHUNK, stream)
    resource.allocate_on(2 * CHUNK, stream)
    assert resource.virtual_statistics().waiting_count == 1
    ctypes.memset(robbed, 1, 3 * CHUNK)  # the work is not done: it may still write there
    resource.allocate(1)
    assert resource.virtual_statistics().waiting_count == 1
    gate.is_open = True
    resource.allocate(1)
    assert resource.virtual_statistics().waiting_count == 0


def test_pages_that_cannot_be_in_two_places_stay_until_the_work_is_done():
    resource, gate = ChunkedVirtualResource(HostDevice(), CHUNK), Gate()
    stream = gate.stream()
    robbed = resource.allocate_on(3 * CHUNK, stream)
    resource.deallocate_on(robbed, 3 * CHUNK, stream)
    resource.allocate_on(2 * CHUNK, stream)
    assert resource.virtual_statistics().created_count == 5
    gate.is_open = True
    resource.allocate_on(2 * CHUNK, stream)
    assert resource.virtual_statistics().created_count == 5


@pytest.mark.parametrize("step", range(12))
def test_d1_d2_whatever_is_refused_caches_go_back_and_it_is_asked_again(step):
    device = FailingDevice(HostDevice(), 12 + step)
    resource = ChunkedVirtualResource(device, CHUNK)
    given_back(resource, 1, 3, 2)
    resource.allocate(4 * CHUNK)
    resource.allocate(2 * CHUNK)
    assert resource.virtual_statistics().allocated_bytes == 6 * CHUNK


@pytest.mark.parametrize("name", DEVICES)
def test_d3_d4_every_call_refused_once_leaks_nothing_and_leaves_it_usable(name):
    step, calls = 0, 1
    while step < calls:
        device = FailingDevice(DEVICES[name](), step)
        resource = ChunkedVirtualResource(device, CHUNK)
        given_back(resource, 1, 3, 2)
        held = resource.allocate(5 * CHUNK)
        resource.allocate(2 * CHUNK)
        resource.deallocate(held, 5 * CHUNK)
        resource.trim()
        resource.trim()
        calls, step = device.call_count, step + 1
        now = resource.virtual_statistics()
        assert (now.allocated_bytes, now.physical_bytes) == (2 * CHUNK, 2 * CHUNK)


def test_a_device_that_refuses_for_good_is_reported_with_the_numbers():
    resource = ChunkedVirtualResource(FailingDevice(HostDevice(), 4, 1 << 40), CHUNK)
    held = resource.allocate(CHUNK)
    with pytest.raises(OutOfMemoryError, match=f"{3 * CHUNK}.*{CHUNK} bytes in chunks"):
        resource.allocate(3 * CHUNK)
    ctypes.memset(held, 1, CHUNK)
    assert resource.virtual_statistics().allocated_bytes == CHUNK


def test_d5_what_is_lost_to_rounding_is_exact_after_every_case(resource):
    for count in (3, 3, 5, 2):
        address = resource.allocate(count * CHUNK - 5)
        now = resource.virtual_statistics()
        assert now.allocated_bytes - now.requested_bytes == 5
        resource.deallocate(address, count * CHUNK - 5)
    now = resource.virtual_statistics()
    assert (now.allocated_bytes, now.requested_bytes) == (0, 0)


def test_d6_d7_d8_cached_bytes_count_free_chunks_and_trim_says_what_went(resource):
    given_back(resource, 5)
    resource.deallocate(resource.allocate(2 * CHUNK), 2 * CHUNK)
    assert resource.virtual_statistics().cached_bytes == 5 * CHUNK
    assert resource.trim() == 5 * CHUNK
    assert resource.virtual_statistics().physical_bytes == 0


def test_d9_two_devices_never_wait_for_each_other():
    busy, idle = (ChunkedVirtualResource(SharedDevice(), CHUNK) for _ in range(2))
    gate = Gate()
    for resource, stream in ((busy, gate.stream()), (idle, None)):
        resource.deallocate_on(resource.allocate_on(3 * CHUNK, stream), 3 * CHUNK, stream)
        resource.allocate_on(2 * CHUNK, stream)
        resource.allocate_on(1, stream)
    assert busy.virtual_statistics().waiting_count == 1
    assert idle.virtual_statistics().waiting_count == 0


def test_d10_chunks_of_another_size_do_not_mix(resource):
    held = resource.allocate(3 * CHUNK)
    given_back(resource, 2)
    resource.set_chunk_size(2 * CHUNK)
    assert resource.virtual_statistics().cached_bytes == 0
    resource.deallocate(held, 3 * CHUNK)
    assert resource.virtual_statistics().physical_bytes in (0, 3 * CHUNK)
    resource.allocate(CHUNK)
    now = resource.virtual_statistics()
    assert (now.allocated_bytes, now.physical_bytes) == (2 * CHUNK, 2 * CHUNK)


@pytest.mark.parametrize("chunk", [0, 1, 4095, 4096 + 1, -CHUNK, 1 << 60])
def test_d11_a_chunk_size_that_the_device_has_not_is_refused_where_it_is_set(resource, chunk):
    with pytest.raises(InputError, match="chunk_bytes"):
        resource.set_chunk_size(chunk)
    assert resource.chunk_bytes == CHUNK


def test_d12_addresses_that_cannot_grow_are_not_lost(resource):
    for count in range(1, 20):
        given_back(resource, count)
    resource.trim()
    resource.allocate(1)
    assert resource.virtual_statistics().address_bytes == CHUNK


@pytest.mark.parametrize("name", sorted(DEVICES.keys() - {"cuda"}))  # which has its own streams
def test_d13_a_block_serves_another_stream_only_behind_its_fence(name):
    resource = ChunkedVirtualResource(DEVICES[name](), CHUNK)
    gate, other = Gate(), Gate()
    stream = gate.stream()
    address = resource.allocate_on(CHUNK, stream)
    resource.deallocate_on(address, CHUNK, stream)
    assert resource.allocate_on(CHUNK, other.stream()) != address
    assert resource.allocate(CHUNK) != address
    assert resource.allocate_on(CHUNK, stream) == address
    resource.deallocate_on(address, CHUNK, stream)
    gate.is_open = True
    assert resource.allocate(CHUNK) == address


def test_a_fence_that_never_signals_blocks_no_thread_for_long():
    resource, gate = ChunkedVirtualResource(HostDevice(), CHUNK), Gate()
    stream = gate.stream()
    resource.deallocate_on(resource.allocate_on(CHUNK, stream), CHUNK, stream)
    assert resource.trim() == 0
    resource.deallocate(resource.allocate(CHUNK), CHUNK)
    assert resource.trim() == CHUNK
    gate.is_open = True


def test_work_of_a_host_stream_never_sees_the_block_of_another():
    resource, stream = ChunkedVirtualResource(HostDevice(), CHUNK), HostStream()
    seen, go = [], threading.Event()
    address = resource.allocate_on(CHUNK, stream)
    ctypes.memset(address, 5, CHUNK)
    stream.submit(lambda: (go.wait(), seen.append(ctypes.string_at(address, CHUNK))))
    resource.deallocate_on(address, CHUNK, stream)
    ctypes.memset(resource.allocate(CHUNK), 6, CHUNK)
    go.set()
    stream.synchronize()
    assert seen == [bytes([5]) * CHUNK]


def test_a_refused_request_waits_for_work_that_ends():
    device = FailingDevice(HostDevice(), 3, 3)
    resource, stream = ChunkedVirtualResource(device, CHUNK), AwaitedGate().stream()
    address = resource.allocate_on(CHUNK, stream)
    resource.deallocate_on(address, CHUNK, stream)
    resource.allocate(CHUNK)
    assert resource.virtual_statistics().wait_count == 1
