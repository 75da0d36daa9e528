import gc
import mmap
import resource
import subprocess
import sys
import threading

import numpy as np
import pytest

from tests.at_once import at_once
from tightship.engine.weights.allocation import allocate
from tightship.errors import OutOfMemoryError
from tightship.resource import HostResource

PAGE = mmap.PAGESIZE
HUGE = 1 << 60
HUGE_PAGE = 2 << 20


GIVE_BACK = """
from pathlib import Path
from tightship._core import release_heap

def resident_bytes():
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) << 10 for line in lines if line.startswith("RssAnon"))

blocks = [bytes([1]) * 65536 for _ in range(400)]
del blocks[:-1]
before = resident_bytes()
release_heap()
print(before - resident_bytes())
"""


@pytest.fixture
def host():
    return HostResource()


@pytest.mark.skipif(sys.platform != "linux", reason="asks Linux what is resident")
def test_freed_heap_below_what_is_held_can_be_given_back():
    done = subprocess.run([sys.executable, "-c", GIVE_BACK], capture_output=True, check=True)
    assert int(done.stdout) > 20 << 20


@pytest.mark.parametrize("size", [0, 1, 63, 64, PAGE - 1, PAGE, PAGE + 1, 5 * PAGE + 7])
def test_a_block_is_zeroed_whole_and_writable(host, size):
    block = host.allocate_block(size)
    array = block.array()
    assert (block.size_bytes, array.nbytes, array.dtype) == (size, size, np.uint8)
    assert not array.any()
    array[:] = 0xFF
    assert array.all()
    assert array.ctypes.data == block.address or size == 0


@pytest.mark.parametrize("alignment", [1, 64, 512, PAGE, 2 * PAGE, 1 << 30])
def test_a_block_is_aligned(host, alignment):
    blocks = [host.allocate_block(100, alignment) for _ in range(5)]
    assert [block.address % alignment for block in blocks] == [0] * 5


def test_a_large_block_asks_for_huge_pages_and_takes_no_more_than_it_counts(host):
    small, large = host.allocate_block(HUGE_PAGE - PAGE), host.allocate_block(3 * HUGE_PAGE + PAGE)
    assert large.address % HUGE_PAGE == 0
    sizes = {block: mapping_of(block.address) for block in (small, large)}
    assert "hg" not in sizes[small]["VmFlags"].split()
    assert "hg" in sizes[large]["VmFlags"].split()
    large.array()[:] = 1
    assert int(mapping_of(large.address)["Rss"].split()[0]) << 10 <= host.current_bytes


def mapping_of(address):
    """Return the system's report on the mapping that contains an address."""
    found = {}
    with open("/proc/self/smaps") as lines:
        inside = False
        for line in lines:
            first, _, rest = line.partition(" ")
            if not first.endswith(":"):
                start, stop = (int(bound, 16) for bound in first.split("-"))
                inside = start <= address < stop
            elif inside:
                found[first[:-1]] = rest.strip()
    return found


def test_live_blocks_are_apart(host):
    sizes = [1, PAGE, 3 * PAGE - 5, 0, 17]
    blocks = [host.allocate_block(size) for size in sizes]
    for number, block in enumerate(blocks):
        block.array()[:] = number + 1
    for number, block in enumerate(blocks):
        assert (block.array() == number + 1).all()
    assert len({block.address for block in blocks}) == len(blocks)


def test_statistics_count_whole_pages_of_live_blocks(host):
    assert (host.current_bytes, host.peak_bytes, host.allocation_count) == (0, 0, 0)
    one, two = host.allocate_block(1), host.allocate_block(2 * PAGE)
    assert (host.current_bytes, host.peak_bytes) == (3 * PAGE, 3 * PAGE)
    del two
    assert (host.current_bytes, host.peak_bytes) == (PAGE, 3 * PAGE)
    del one
    assert (host.current_bytes, host.peak_bytes, host.allocation_count) == (0, 3 * PAGE, 2)


def test_resources_count_apart(host):
    other = HostResource()
    kept = other.allocate_block(PAGE)
    assert (host.current_bytes, other.current_bytes, kept.size_bytes) == (0, PAGE, PAGE)


def test_an_array_keeps_its_block(host):
    array = host.allocate_block(PAGE).array()
    part = array[10:20]
    del array
    gc.collect()
    part[:] = 7
    assert host.current_bytes == PAGE
    assert part.tolist() == [7] * 10
    del part
    assert host.current_bytes == 0


def test_a_block_keeps_its_resource():
    block = HostResource().allocate_block(PAGE)
    gc.collect()
    block.array()[:] = 1
    assert block.array().all()


def test_a_freed_block_is_given_back_to_the_system(host):
    block = host.allocate_block(PAGE)
    address = block.address
    block.array()[:] = 1
    del block
    with open("/proc/self/maps") as maps:
        ranges = [tuple(int(a, 16) for a in line.split()[0].split("-")) for line in maps]
    again = host.allocate_block(PAGE)
    assert not again.array().any()
    taken = any(start <= address < stop for start, stop in ranges)
    assert not taken or again.address != address


def test_pages_are_not_resident_before_they_are_touched(host):
    def resident_bytes():
        with open("/proc/self/statm") as statm:
            return int(statm.read().split()[1]) * PAGE

    before = resident_bytes()
    block = host.allocate_block(1 << 30)
    assert resident_bytes() - before < 1 << 24
    assert host.current_bytes == block.size_bytes


@pytest.mark.parametrize("size", [HUGE, (1 << 64) - 1, (1 << 64) - PAGE])
def test_a_refusal_raises_and_counts_nothing(host, size):
    with pytest.raises(MemoryError):
        host.allocate_block(size)
    assert (host.current_bytes, host.peak_bytes, host.allocation_count) == (0, 0, 0)
    assert host.allocate_block(PAGE).size_bytes == PAGE


def test_the_engine_says_what_the_system_refused(host):
    with pytest.raises(OutOfMemoryError, match=rf"{HUGE} bytes for an arena") as refused:
        allocate(host, HUGE, "an arena")
    assert refused.value.requested_bytes == HUGE


def test_a_limit_on_data_is_a_refusal(host):
    before = resource.getrlimit(resource.RLIMIT_DATA)
    with open("/proc/self/status") as status:
        data = next(int(line.split()[1]) * 1024 for line in status if line.startswith("VmData"))
    resource.setrlimit(resource.RLIMIT_DATA, (data + (64 << 20), before[1]))
    try:
        with pytest.raises(MemoryError):
            host.allocate_block(128 << 20)
    finally:
        resource.setrlimit(resource.RLIMIT_DATA, before)
    assert host.allocate_block(128 << 20).size_bytes == 128 << 20


def test_threads_may_allocate_at_once(host):
    wrong = []
    start = threading.Barrier(4)

    def work(number):
        start.wait()
        for size in range(1, 300):
            block = host.allocate_block(size * 100)
            block.array()[:] = number
            wrong.extend([] if (block.array() == number).all() else [size])

    at_once(work, range(1, 5))
    assert wrong == []
    assert (host.current_bytes, host.allocation_count) == (0, 4 * 299)
    assert host.peak_bytes >= 30_000
