"""Behaviour that both policies share."""

import ctypes
import os
import threading

import pytest

from tests.resource.virtual.devices import DEVICES
from tests.resource.virtual.gate import Gate
from tightship.errors import InputError, OutOfMemoryError
from tightship.resource.virtual import (
    ChunkedVirtualResource,
    HostDevice,
    SharedDevice,
    StealingVirtualResource,
)

CHUNK = 1 << 16
POLICIES = {
    "seed": lambda device: ChunkedVirtualResource(device, CHUNK),
    "stealing": lambda device: StealingVirtualResource(device, page_bytes=CHUNK),
}


@pytest.fixture(params=POLICIES)
def policy(request):
    return POLICIES[request.param]


@pytest.mark.parametrize("device", DEVICES)
def test_misuse_is_refused_and_changes_nothing(policy, device):
    resource = policy(DEVICES[device]())
    address = resource.allocate(CHUNK)
    for wrong, size, words in (
        (address + 1, CHUNK, "no block begins"),
        (address, CHUNK + 1, "Give the size that it was allocated with"),
        (4096, CHUNK, "belong to this resource"),
    ):
        with pytest.raises(InputError, match=words):
            resource.deallocate(wrong, size)
    resource.deallocate(address, CHUNK)
    with pytest.raises(InputError, match="already free"):
        resource.deallocate(address, CHUNK)


@pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork:DeprecationWarning")
def test_a_child_serves_itself_from_private_pages_and_refuses_shared_ones(policy):
    private, shared = policy(HostDevice()), policy(SharedDevice())
    child = os.fork()
    if child == 0:
        ctypes.memset(private.allocate(CHUNK), 1, CHUNK)
        try:
            shared.allocate(CHUNK)
        except OutOfMemoryError:
            os._exit(0)
        os._exit(1)
    assert os.waitpid(child, 0)[1] == 0


@pytest.mark.parametrize("device", DEVICES)
def test_d5_to_d8_statistics_are_exact_after_every_call(policy, device):
    resource = policy(DEVICES[device]())
    live = []
    for count in (3, 1, 5, 2, 5, 1):
        live.append((resource.allocate(count * CHUNK - 5), count * CHUNK - 5))
        if count != 2:
            resource.deallocate(*live.pop(0))
        now = resource.virtual_statistics()
        assert now.requested_bytes == sum(size for _, size in live)
        assert now.cached_bytes == now.physical_bytes - now.allocated_bytes
        assert now.physical_bytes == (now.created_count - now.released_count) * CHUNK
    cached_bytes = resource.virtual_statistics().cached_bytes
    whole_bytes = cached_bytes // CHUNK * CHUNK
    assert resource.trim() == whole_bytes
    assert resource.virtual_statistics().cached_bytes == cached_bytes - whole_bytes
    for block in live:
        resource.deallocate(*block)
    now = resource.virtual_statistics()
    assert (now.allocated_bytes, now.requested_bytes) == (0, 0)
    assert resource.trim() == now.physical_bytes


def test_d9_a_pool_whose_work_never_ends_holds_up_no_other(policy):
    gate, done = Gate(), threading.Event()
    stream, busy, idle = gate.stream(), policy(HostDevice()), policy(HostDevice())
    for resource in (busy, idle):
        resource.deallocate_on(resource.allocate_on(3 * CHUNK, stream), 3 * CHUNK, stream)

    def ask():
        busy.allocate(2 * CHUNK)
        done.set()

    threading.Thread(target=ask).start()
    idle.deallocate(idle.allocate_on(3 * CHUNK, stream), 3 * CHUNK)
    assert idle.trim() == 3 * CHUNK
    assert done.wait(60)
    assert busy.trim() == 0
    gate.is_open = True


def test_a_fence_that_never_signals_costs_its_own_blocks_and_no_more(policy):
    resource, gate = policy(HostDevice()), Gate()
    stream = gate.stream()
    resource.deallocate_on(resource.allocate_on(CHUNK, stream), CHUNK, stream)
    for _ in range(3):
        resource.deallocate(resource.allocate(CHUNK), CHUNK)
    assert resource.virtual_statistics().physical_bytes == 2 * CHUNK
    assert resource.trim() == CHUNK
    gate.is_open = True
    assert resource.trim() == CHUNK
