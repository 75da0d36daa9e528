"""Virtual resources, devices and streams that refer to each other through Python are collected."""

import gc
import subprocess
import sys
import weakref

import pytest

from tests.resource.virtual.file_pair import Addresses, Part
from tightship.resource.virtual import (
    FailingDevice,
    HostDevice,
    PythonDevice,
    PythonStream,
    virtual_resource,
)

PAGE = 1 << 16
POLICIES = ("stealing", "chunked")


class Referrer:
    """Object that a function refers to, and that refers to a resource."""

    def __init__(self):
        self.held = None


class Done:
    """A fence behind work that is done."""

    def is_signalled(self):
        return True


def device_of(referrer):
    return PythonDevice(lambda size, _=referrer: Part(size), Addresses, maps_twice=True)


def used(resource, stream=None):
    resource.deallocate_on(resource.allocate_on(PAGE, stream), PAGE, stream)
    return resource


CYCLES = {
    "device": lambda referrer, policy: used(
        virtual_resource(device_of(referrer), policy=policy, page_bytes=PAGE)
    ),
    "failing device": lambda referrer, policy: virtual_resource(
        FailingDevice(device_of(referrer), 0, 0), policy=policy, page_bytes=PAGE
    ),
    "stream": lambda referrer, policy: used(
        virtual_resource(HostDevice(), policy=policy, page_bytes=PAGE),
        PythonStream(lambda _=referrer: Done()),
    ),
    "stream alone": lambda referrer, _: PythonStream(lambda _=referrer: None),
}


def seen_of(cycle, policy, keep=None):
    referrer = Referrer()
    referrer.held = CYCLES[cycle](referrer, policy)
    if keep is not None:
        keep.append(referrer.held)
    return weakref.ref(referrer)


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("cycle", CYCLES)
def test_cycles_are_collected(cycle, policy):
    seen = [seen_of(cycle, policy) for _ in range(10)]
    gc.collect()
    assert [each for each in seen if each() is not None] == []


@pytest.mark.parametrize("policy", POLICIES)
def test_what_is_in_use_stays(policy):
    kept = []
    seen = seen_of("device", policy, kept)
    for _ in range(3):
        gc.collect()
        used(kept[0])
    assert seen() is not None
    kept.clear()
    del kept
    gc.collect()
    assert seen() is None


@pytest.mark.parametrize("policy", POLICIES)
def test_a_stream_that_only_a_resource_has_stays_as_long(policy):
    resource = virtual_resource(HostDevice(), policy=policy, page_bytes=PAGE)
    for _ in range(3):
        referrer = Referrer()
        stream = PythonStream(lambda _=referrer: Done())
        referrer.held = stream
        address = resource.allocate_on(PAGE, stream)
        resource.deallocate_on(address, PAGE, stream)
        del referrer, stream
        gc.collect()
        used(resource)
    resource.trim()


FIVE_LINES = """
from tests.resource.virtual.file_pair import Addresses, Part
from tightship.resource.virtual import PythonDevice, PythonStream, virtual_resource
class Mine:
    def __init__(self):
        device = PythonDevice(self.make, Addresses, maps_twice=True)
        self.memory = virtual_resource(device, policy={policy!r}, page_bytes=65536)
        self.stream = PythonStream(self.record)
        self.block = self.memory.allocate_on(65536, self.stream)
    def make(self, size):
        return Part(size)
    def record(self):
        return None
mine = Mine()
"""


@pytest.mark.parametrize("policy", POLICIES)
def test_nothing_is_said_to_leak_at_exit(policy):
    script = FIVE_LINES.format(policy=policy)
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
