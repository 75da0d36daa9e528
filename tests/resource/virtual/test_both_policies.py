"""What both policies do alike."""

import ctypes
import os

import pytest

from tests.resource.virtual.devices import DEVICES
from tightship.errors import InputError, OutOfMemoryError
from tightship.resource.virtual import (
    HostDevice,
    SeedVirtualResource,
    SharedDevice,
    StealingVirtualResource,
)

CHUNK = 1 << 16
POLICIES = {
    "seed": lambda device: SeedVirtualResource(device, CHUNK),
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
        (address, CHUNK + 1, "that size"),
        (4096, CHUNK, "not of this resource"),
    ):
        with pytest.raises(InputError, match=words):
            resource.deallocate(wrong, size)
    resource.deallocate(address, CHUNK)
    with pytest.raises(InputError, match="free already"):
        resource.deallocate(address, CHUNK)


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
