"""Unused free pages move to where they are needed, and nothing is lost on the way."""

import ctypes
import os
import random
import threading
import weakref

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.stateful import run_state_machine_as_test

from tests.resource.conformance import Conformance
from tests.resource.virtual.devices import DEVICES
from tests.resource.virtual.gate import AwaitedGate, Gate
from tightship.errors import InputError, OutOfMemoryError
from tightship.resource.virtual import (
    FailingDevice,
    HostDevice,
    HostStream,
    PythonStream,
    StealingVirtualResource,
)

PAGE = 1 << 14


def make(device, **options):
    return StealingVirtualResource(device, page_bytes=PAGE, **options)


@pytest.fixture(params=DEVICES)
def device(request):
    return DEVICES[request.param]()


@pytest.fixture
def resource(device):
    return make(device)


def holes_between(resource, count, pages=2):
    """`count` free blocks of some pages, with blocks in use between them, which are returned."""
    blocks = [resource.allocate(pages * PAGE) for _ in range(2 * count)]
    for block in blocks[::2]:
        resource.deallocate(block, pages * PAGE)
    return blocks[1::2]


def test_it_conforms_over_every_device(device):
    run_state_machine_as_test(
        lambda: Conformance(lambda: StealingVirtualResource(device, page_bytes=4096)),
        settings=settings(
            max_examples=6,
            stateful_step_count=30,
            deadline=None,
            suppress_health_check=list(HealthCheck),
        ),
    )


def test_a_block_of_the_same_size_is_the_same_block(resource):
    address = resource.allocate(3 * PAGE)
    resource.deallocate(address, 3 * PAGE)
    assert resource.allocate(3 * PAGE) == address
    assert resource.virtual_statistics().exact_count == 1


def test_neighbours_that_are_free_are_one(resource):
    first, second = resource.allocate(2 * PAGE), resource.allocate(2 * PAGE)
    resource.deallocate(first, 2 * PAGE)
    resource.deallocate(second, 2 * PAGE)
    assert resource.allocate(4 * PAGE) == first
    assert resource.virtual_statistics().created_count == 4


def test_free_pages_from_elsewhere_serve_before_any_is_made(resource):
    holes_between(resource, 4)
    resource.allocate(8 * PAGE)
    now = resource.virtual_statistics()
    assert (now.created_count, now.moved_count, now.remap_count) == (16, 8, 1)
    assert now.physical_bytes == now.allocated_bytes


def test_only_the_rest_is_made(resource):
    holes_between(resource, 2)
    resource.allocate(7 * PAGE)
    assert resource.virtual_statistics().physical_bytes == (4 + 7) * PAGE


def test_no_block_in_use_loses_a_byte_while_pages_move(resource):
    kept = holes_between(resource, 6)
    for number, block in enumerate(kept):
        ctypes.memset(block, number + 1, 2 * PAGE)
    large = resource.allocate(12 * PAGE)
    ctypes.memset(large, 99, 12 * PAGE)
    for number, block in enumerate(kept):
        assert ctypes.string_at(block, 2 * PAGE) == bytes([number + 1]) * 2 * PAGE


def test_holes_are_filled_again_where_that_moves_fewer_pages(resource):
    kept = holes_between(resource, 2)
    large = resource.allocate(4 * PAGE)
    resource.deallocate(large, 4 * PAGE)
    before = resource.virtual_statistics().moved_count
    for block in kept:
        resource.deallocate(block, 2 * PAGE)
    assert resource.allocate(5 * PAGE) < large
    assert resource.virtual_statistics().moved_count - before <= 3


@given(seed=st.integers(0, 2**32))
@settings(max_examples=15, deadline=None)
def test_what_is_held_never_exceeds_what_was_live_by_more_than_a_page_a_block(seed):
    resource, choice = make(HostDevice()), random.Random(seed)
    live, peak_bytes, most = [], 0, 0
    for _ in range(300):
        if live and choice.random() < 0.5:
            resource.deallocate(*live.pop(choice.randrange(len(live))))
        else:
            size = choice.randrange(1, 20 * PAGE)
            live.append((resource.allocate(size), size))
        peak_bytes = max(peak_bytes, sum(size for _, size in live))
        most = max(most, len(live))
    held = resource.virtual_statistics().peak_physical_bytes
    assert held <= peak_bytes + (2 * most + 2) * PAGE


@pytest.mark.parametrize("name", DEVICES)
def test_every_call_refused_once_leaks_nothing_and_leaves_it_usable(name):
    step, calls = 0, 1
    while step < calls:
        device = FailingDevice(DEVICES[name](), step)
        resource = make(device)
        try:
            holes_between(resource, 3)
            resource.allocate(7 * PAGE)
        except OutOfMemoryError:
            pass
        held = resource.allocate(9 * PAGE)
        ctypes.memset(held, 1, 9 * PAGE)
        resource.deallocate(held, 9 * PAGE)
        resource.trim()
        resource.trim()
        calls, step = device.call_count, step + 1
        now = resource.virtual_statistics()
        assert now.physical_bytes == now.allocated_bytes


def test_a_stream_gets_its_own_block_back_at_once_and_others_wait(resource):
    gate = Gate()
    stream = gate.stream()
    resource = make(HostDevice(), patience_s=0)
    address = resource.allocate_on(4 * PAGE, stream)
    resource.deallocate_on(address, 4 * PAGE, stream)
    assert resource.allocate(4 * PAGE) != address
    assert resource.allocate_on(3 * PAGE, stream) == address
    resource.deallocate_on(address, 3 * PAGE, stream)
    gate.is_open = True
    assert resource.allocate(4 * PAGE) == address


def test_pages_in_use_by_a_stream_are_never_moved():
    resource, gate = make(HostDevice(), patience_s=0), Gate()
    stream = gate.stream()
    blocks = [resource.allocate_on(2 * PAGE, stream) for _ in range(8)]
    for block in blocks[::2]:
        resource.deallocate_on(block, 2 * PAGE, stream)
    resource.allocate(8 * PAGE)
    assert resource.virtual_statistics().moved_count == 0
    assert resource.trim() == 0
    gate.is_open = True
    resource.allocate(8 * PAGE)
    assert resource.virtual_statistics().moved_count == 8


@pytest.mark.parametrize(("is_heeded", "found"), [(True, 5), (False, 6)])
def test_work_is_overwritten_where_its_stream_is_not_named(is_heeded, found):
    resource, stream = make(HostDevice(), patience_s=0), HostStream()
    go, seen = threading.Event(), []
    blocks = [resource.allocate_on(2 * PAGE, stream) for _ in range(8)]
    for block in blocks:
        ctypes.memset(block, 5, 2 * PAGE)
    stream.submit(lambda: (go.wait(), seen.extend(ctypes.string_at(b, 2 * PAGE) for b in blocks)))
    for block in blocks:
        resource.deallocate_on(block, 2 * PAGE, stream if is_heeded else None)
    ctypes.memset(resource.allocate(16 * PAGE), 6, 16 * PAGE)
    go.set()
    stream.synchronize()
    assert set(seen) == {bytes([found]) * 2 * PAGE}


class Record:
    """Function that a stream is made of; all of its work is done."""

    def __call__(self):
        return None


def on_streams_of_their_own(resource, count):
    """Blocks that came and went, each on another stream; what keeps the streams, while it lives."""
    kept = weakref.WeakSet()
    for _ in range(count):
        record = Record()
        kept.add(record)
        stream = PythonStream(record)
        resource.deallocate_on(resource.allocate_on(PAGE, stream), PAGE, stream)
    return kept


def test_streams_are_forgotten_when_no_block_waits_for_them():
    resource = make(HostDevice())
    kept = on_streams_of_their_own(resource, 1000)
    assert len(kept) <= 64
    resource.trim()
    assert len(kept) == 0


def test_a_stream_is_remembered_while_its_work_may_use_a_block():
    resource, gate = make(HostDevice(), patience_s=0), Gate()
    stream = gate.stream()
    address = resource.allocate_on(PAGE, stream)
    resource.deallocate_on(address, PAGE, stream)
    on_streams_of_their_own(resource, 200)
    resource.trim()
    assert resource.allocate(PAGE) != address
    gate.is_open = True
    resource.trim()


def test_no_stream_is_ended_in_the_midst_of_its_work():
    resource, stream, go = make(HostDevice()), HostStream(), threading.Event()
    resource.deallocate_on(resource.allocate_on(PAGE, stream), PAGE, stream)
    stream.synchronize()
    resource.trim()
    resource.allocate_on(PAGE, stream)
    stream.submit(go.wait)
    del stream
    on_streams_of_their_own(resource, 200)
    resource.trim()
    go.set()


def test_work_that_ends_soon_is_waited_for_before_memory_is_made():
    resource, stream = make(HostDevice(), patience_s=30), HostStream()
    go = threading.Event()
    address = resource.allocate_on(4 * PAGE, stream)
    stream.submit(go.wait)
    resource.deallocate_on(address, 4 * PAGE, stream)
    threading.Timer(0.05, go.set).start()
    assert resource.allocate(4 * PAGE) == address


def test_a_wait_for_work_is_counted():
    resource, stream = make(HostDevice(), patience_s=30), AwaitedGate().stream()
    address = resource.allocate_on(4 * PAGE, stream)
    resource.deallocate_on(address, 4 * PAGE, stream)
    assert resource.allocate(4 * PAGE) == address
    assert resource.virtual_statistics().wait_count == 1


def test_two_pools_never_wait_for_each_other():
    gate = Gate()
    busy, idle = make(HostDevice(), patience_s=60), make(HostDevice())
    stream = gate.stream()
    busy.deallocate_on(busy.allocate_on(PAGE, stream), PAGE, stream)
    held = threading.Thread(target=busy.allocate, args=(PAGE,), daemon=True)
    held.start()
    idle.deallocate(idle.allocate(PAGE), PAGE)
    assert held.is_alive()
    gate.is_open = True
    held.join(60)
    assert not held.is_alive()


def test_a_budget_holds_and_says_so():
    resource = make(HostDevice(), max_bytes=10 * PAGE)
    held = resource.allocate(8 * PAGE)
    with pytest.raises(OutOfMemoryError, match=f"of at most {10 * PAGE}.*max_bytes") as refused:
        resource.allocate(3 * PAGE)
    assert refused.value.available_bytes == 2 * PAGE
    resource.deallocate(held, 8 * PAGE)
    resource.allocate(10 * PAGE)
    assert resource.virtual_statistics().peak_physical_bytes == 10 * PAGE


def test_trim_gives_back_all_that_no_block_touches(resource):
    kept = holes_between(resource, 3)
    assert resource.trim() == 6 * PAGE
    for block in kept:
        resource.deallocate(block, 2 * PAGE)
    assert resource.trim() == 6 * PAGE
    assert resource.statistics().reserved_bytes == 0


def test_what_was_not_needed_for_a_while_goes_back_by_itself():
    resource = make(HostDevice(), idle_s=0, keep_bytes=2 * PAGE)
    resource.deallocate(resource.allocate(100 * PAGE), 100 * PAGE)
    for _ in range(2000):
        resource.deallocate(resource.allocate(PAGE), PAGE)
    assert resource.virtual_statistics().physical_bytes <= 4 * PAGE


def test_memory_goes_back_to_the_system():
    resource = StealingVirtualResource(HostDevice())
    before = _resident_bytes()
    address = resource.allocate(64 << 20)
    ctypes.memset(address, 1, 64 << 20)
    assert _resident_bytes() - before > 60 << 20
    resource.deallocate(address, 64 << 20)
    resource.trim()
    assert _resident_bytes() - before < 8 << 20


def _resident_bytes():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


@pytest.mark.parametrize(
    "options",
    [{"page_bytes": 0}, {"page_bytes": 4097}, {"page_bytes": 3 << 20}, {"max_bytes": 0},
     {"idle_s": -1}, {"patience_s": float("nan")}, {"keep_bytes": -1}],
)  # fmt: skip
def test_options_that_cannot_be_are_refused_by_name(options):
    with pytest.raises(InputError, match=next(iter(options))):
        StealingVirtualResource(HostDevice(), **options)
