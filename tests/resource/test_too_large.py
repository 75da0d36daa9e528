"""Requests that the machine can never meet are refused at once, and leave nothing behind."""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import tightship.plug
from tests.resource.conformance import RESOURCES
from tests.resource.virtual.devices import DEVICES
from tightship.errors import OutOfMemoryError
from tightship.resource import HostResource, MemoryResource, SegmentResource
from tightship.resource.virtual import (
    ChunkedVirtualResource,
    HostDevice,
    PlannedResource,
    SharedDevice,
    StealingVirtualResource,
    VirtualResource,
    virtual_resource,
)

OVERCOMMIT = Path("/proc/sys/vm/overcommit_memory")

pytestmark = pytest.mark.skipif(
    not OVERCOMMIT.exists() or OVERCOMMIT.read_text().strip() == "1",
    reason="the system grants private memory of any size",
)

PAGES = 1 << 16

VIRTUAL: dict[str, Callable[[], VirtualResource]] = {
    "stealing": lambda: StealingVirtualResource(HostDevice()),
    "stealing small pages": lambda: StealingVirtualResource(HostDevice(), page_bytes=4096),
    "stealing shared": lambda: StealingVirtualResource(SharedDevice()),
    "stealing cuda": lambda: StealingVirtualResource(DEVICES["cuda"]()),
    "seed": lambda: ChunkedVirtualResource(HostDevice()),
    "seed shared": lambda: ChunkedVirtualResource(SharedDevice()),
    "seed cuda": lambda: ChunkedVirtualResource(DEVICES["cuda"]()),
}

OTHERS: dict[str, Callable[[], MemoryResource]] = {
    "host": HostResource,
    "filled": lambda: HostResource(is_filled=True),
    "segment": SegmentResource,
    "planned": lambda: PlannedResource(virtual_resource()),
    "small in front": lambda: virtual_resource(small_bytes=1024),
    **{name: lambda make=make: make(virtual_resource()) for name, make in RESOURCES.items()},
}

CUDA_BYTES = 1 << 40
"""Memory of the device that the tests' driver reports."""


def least_power(name: str) -> int:
    """The power of two above all that the machine, or the device, has."""
    machine = Path("/proc/meminfo").read_text().split()
    own = sum(int(machine[machine.index(f"{key}:") + 1]) << 10 for key in ("MemTotal", "SwapTotal"))
    return max(36, (CUDA_BYTES if "cuda" in name else own).bit_length() + 1)


def refuse_all(resource: MemoryResource, name: str) -> None:
    for power in range(least_power(name), 64):
        with pytest.raises(OutOfMemoryError) as refused:
            resource.allocate(1 << power)
        assert refused.value.requested_bytes in {1 << power, (1 << 63) - 1}


def figures(resource: MemoryResource) -> dict[str, int]:
    now = resource.virtual_statistics() if isinstance(resource, VirtualResource) else None
    every = (resource.statistics(), now)
    return {
        name: getattr(each, name)
        for each in every
        if each is not None
        for name in dir(each)
        if name.endswith(("_bytes", "_count")) and name not in {"retry_count", "wait_count"}
    }


@pytest.mark.parametrize("name", VIRTUAL)
def test_a_virtual_resource_refuses_and_records_nothing(name):
    resource = VIRTUAL[name]()
    refuse_all(resource, name)
    assert set(figures(resource).values()) == {0}


@pytest.mark.parametrize("name", VIRTUAL)
def test_what_is_kept_stays_kept_by_a_refusal(name):
    resource = VIRTUAL[name]()
    held, kept = resource.allocate(3 << 20), resource.allocate(1 << 20)
    resource.deallocate(kept, 1 << 20)
    before = figures(resource)
    refuse_all(resource, name)
    assert figures(resource) == before
    resource.deallocate(held, 3 << 20)
    resource.trim()
    assert resource.statistics().reserved_bytes == 0


@pytest.mark.parametrize("name", OTHERS)
def test_every_other_resource_refuses_and_changes_nothing(name):
    resource = OTHERS[name]()
    before = figures(resource)
    refuse_all(resource, name)
    assert figures(resource) == before


@pytest.mark.parametrize("name", ["stealing", "seed"])
def test_the_refusal_says_that_it_is_the_size(name):
    with pytest.raises(OutOfMemoryError, match="never has memory for so large a block"):
        VIRTUAL[name]().allocate(1 << 50)


def test_a_budget_is_refused_before_a_page_is_made():
    resource = StealingVirtualResource(HostDevice(), page_bytes=PAGES, max_bytes=1 << 20)
    with pytest.raises(OutOfMemoryError, match="max_bytes"):
        resource.allocate((1 << 20) + 1)
    assert set(figures(resource).values()) == {0}


@pytest.mark.parametrize("name", ["stealing", "seed", "small in front"])
def test_numpy_gets_its_own_error(name):
    resource = (VIRTUAL | OTHERS)[name]()
    before = figures(resource)
    for make in (np.empty, np.zeros, np.ones):
        with tightship.plug.numpy.use(resource), pytest.raises(MemoryError):
            make(1 << least_power(name), np.uint8)
    assert figures(resource) == before


LITTLE_DATA = """
import resource
from tightship.errors import OutOfMemoryError
from tightship.resource.virtual import HostDevice, ChunkedVirtualResource, StealingVirtualResource

data = next(int(line.split()[1]) << 10 for line in open("/proc/self/status") if "VmData" in line)
resource.setrlimit(resource.RLIMIT_DATA, (data + (96 << 20),) * 2)
pool = MADE
held = pool.allocate(8 << 20)
before = pool.statistics()
for size_bytes in (128 << 20, 90 << 20, 1 << 30):
    try:
        pool.allocate(size_bytes)
    except OutOfMemoryError:
        after = pool.statistics()
        print(after.reserved_bytes - before.reserved_bytes, after.current_bytes == 8 << 20)
pool.deallocate(pool.allocate(32 << 20), 32 << 20)
"""


@pytest.mark.parametrize(
    "made",
    [
        "StealingVirtualResource(HostDevice(), page_bytes=65536)",
        "ChunkedVirtualResource(HostDevice(), 1 << 20)",
    ],
)
def test_what_the_process_may_not_have_is_refused_whole(made):
    program = LITTLE_DATA.replace("MADE", made)
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=100, check=False
    )
    assert (done.stderr, done.stdout.splitlines()) == ("", ["0 True"] * 3)


READ_WHILE_IT_WRITES = """
import fcntl, os, sys, threading
from tightship.resource import HostResource, TracingResource

# A log that is written in pieces of 64 KiB to a pipe of 4: each is read while it is written, or
# neither thread goes on.
reading = os.open(sys.argv[1], os.O_RDONLY | os.O_NONBLOCK)
fcntl.fcntl(reading, fcntl.F_SETPIPE_SZ, 4096)
resource = TracingResource(HostResource(), sys.argv[1])
os.set_blocking(reading, True)

def drain():
    while os.read(reading, 4096):
        pass

threading.Thread(target=drain, daemon=True).start()
for _ in range(1000):
    resource.deallocate(resource.allocate(16 << 20), 16 << 20)
print("done", flush=True)
os._exit(0)
"""


def test_other_threads_run_while_a_large_block_is_made(tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    done = subprocess.run(
        [sys.executable, "-c", READ_WHILE_IT_WRITES, pipe],
        capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert (done.stderr, done.stdout) == ("", "done\n")
