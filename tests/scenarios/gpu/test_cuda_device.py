"""Both virtual policies on a real CUDA device; `tests/resource/virtual` has a simulated one."""

import random
import subprocess
import sys
import time

import pytest

from tests.at_once import at_once
from tests.scenarios.gpu.driver import driver, require_device
from tightship.errors import InputError, OutOfMemoryError
from tightship.resource.virtual import (
    ChunkedVirtualResource,
    CudaDevice,
    CudaStream,
    StealingVirtualResource,
)

require_device()

MIB = 1 << 20
PAGE = 2 * MIB


def chunked():
    return ChunkedVirtualResource(CudaDevice(0), PAGE)


def stealing(**settings):
    return StealingVirtualResource(CudaDevice(0), page_bytes=PAGE, **settings)


def new_stream():
    """Make a stream of the driver, and return its handle with it."""
    handle = driver().stream()
    return handle, CudaStream(CudaDevice(0), handle)


@pytest.fixture(params=[chunked, stealing])
def resource(request):
    return request.param()


def churn(resource, seed, operations=300, stream_of=new_stream):
    """Take and return blocks at random on a stream, and count those whose bytes changed."""
    choice, live, wrong = random.Random(seed), [], 0
    handle, stream = stream_of()

    def give_back(index):
        address, size, mark = live.pop(index)
        changed = driver().ends(address, size) != (mark, mark)
        resource.deallocate_on(address, size, stream)
        return changed

    for _ in range(operations):
        if live and (choice.random() < 0.45 or len(live) > 40):
            wrong += give_back(choice.randrange(len(live)))
        else:
            size = 4 * choice.randrange(1, choice.choice((1000, PAGE, 8 * PAGE)))
            mark = choice.randrange(1 << 32)
            address = resource.allocate_on(size, stream)
            driver().fill(address, size, mark, handle)
            live.append((address, size, mark))
    while live:
        wrong += give_back(-1)
    return wrong


@pytest.mark.parametrize("seed", range(3))
def test_blocks_keep_their_bytes_and_the_device_gets_all_memory_back(resource, seed):
    stream = new_stream()
    churn(resource, seed, 20, lambda: stream)  # the driver takes memory at the first uses
    resource.trim()
    before = driver().free_bytes()
    assert churn(resource, seed, 300, lambda: stream) == 0
    resource.trim()
    assert resource.virtual_statistics().physical_bytes == 0
    assert driver().free_bytes() >= before


def test_threads_on_streams_of_their_own_never_see_each_others_bytes(resource):
    wrong = at_once(lambda seed: churn(resource, seed, 120), range(6))
    assert wrong == [0] * 6


def test_a_block_of_a_busy_stream_serves_that_stream_only(resource):
    (handle, busy), (_, other) = new_stream(), new_stream()
    with driver().busy(handle):
        address = resource.allocate_on(PAGE, busy)
        resource.deallocate_on(address, PAGE, busy)
        theirs = resource.allocate_on(PAGE, other)
        assert theirs != address
        assert resource.allocate_on(PAGE, busy) == address
        resource.deallocate_on(address, PAGE, busy)
        resource.deallocate_on(theirs, PAGE, other)
    assert resource.trim() == 2 * PAGE


def test_memory_that_waits_for_a_busy_stream_stays(resource):
    handle, busy = new_stream()
    with driver().busy(handle):
        resource.deallocate_on(resource.allocate_on(PAGE, busy), PAGE, busy)
        assert resource.trim() == 0
    assert resource.trim() == PAGE


def test_free_pages_between_blocks_serve_one_large_request():
    resource = stealing()
    blocks = [resource.allocate(PAGE) for _ in range(512)]
    for mark, address in enumerate(blocks):
        driver().fill(address, PAGE, mark)
    for address in blocks[::2]:
        resource.deallocate(address, PAGE)
    large = resource.allocate(256 * PAGE)
    driver().fill(large, 256 * PAGE, 0xABCD)
    assert resource.virtual_statistics().physical_bytes == 512 * PAGE
    assert driver().ends(large, 256 * PAGE) == (0xABCD, 0xABCD)
    for mark, address in list(enumerate(blocks))[1::2]:
        assert driver().ends(address, PAGE) == (mark, mark)


@pytest.mark.parametrize("size_bytes", [1 << 38, 1 << 40, 1 << 47])
def test_more_than_the_device_has_is_refused_soon_and_leaves_nothing(resource, size_bytes):
    before, start = driver().free_bytes(), time.monotonic()
    with pytest.raises(OutOfMemoryError, match=f"{size_bytes} bytes"):
        resource.allocate(size_bytes)
    assert time.monotonic() - start < 30
    resource.trim()
    assert driver().free_bytes() >= before
    resource.deallocate(resource.allocate(PAGE), PAGE)


def test_all_the_device_has_is_refused_once_it_runs_out_and_leaves_nothing():
    resource = stealing(patience_s=0)
    resource.deallocate(resource.allocate(PAGE), PAGE)
    resource.trim()
    before, size_bytes = driver().free_bytes(), CudaDevice(0).total_bytes
    with pytest.raises(OutOfMemoryError, match=f"{size_bytes} bytes"):
        resource.allocate(size_bytes)
    assert resource.trim() == 0
    assert driver().free_bytes() >= before
    resource.deallocate(resource.allocate(PAGE), PAGE)


def test_a_limit_holds():
    resource = stealing(max_bytes=8 * PAGE)
    blocks = [resource.allocate(2 * PAGE) for _ in range(4)]
    with pytest.raises(OutOfMemoryError):
        resource.allocate(1)
    for address in blocks:
        resource.deallocate(address, 2 * PAGE)
    assert resource.virtual_statistics().physical_bytes <= 8 * PAGE


def test_pages_smaller_than_the_devices_are_refused():
    with pytest.raises(InputError, match=r"page_bytes.*2097152"):
        StealingVirtualResource(CudaDevice(0), page_bytes=MIB)
    with pytest.raises(InputError, match="2097152 bytes"):
        ChunkedVirtualResource(CudaDevice(0)).set_chunk_size(3 * MIB)


SCRIPT = """
import sys
from tests.scenarios.gpu.driver import driver
from tightship.resource.virtual import ChunkedVirtualResource, CudaDevice, CudaStream
from tightship.resource.virtual import StealingVirtualResource
device = CudaDevice(0)
kept = []
for kind in (StealingVirtualResource, ChunkedVirtualResource):
    resource = kind(device)
    handle = driver().stream()
    stream = CudaStream(device, handle)
    address = resource.allocate_on(1 << 22, stream)
    driver().fill(address, 1 << 22, 7, handle)
    resource.deallocate_on(address, 1 << 22, stream)
    kept += [resource, stream, resource.allocate(1 << 22)]
"""


def test_a_process_that_returns_nothing_ends_in_peace():
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT], capture_output=True, text=True, check=False, timeout=120
    )
    assert (done.returncode, done.stderr) == (0, "")
