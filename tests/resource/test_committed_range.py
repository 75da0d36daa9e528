import mmap
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tightship._core import CommittedRange

PAGE = mmap.PAGESIZE
HUGE = 2 << 20


def resident_bytes(memory):
    """Return the resident bytes behind a range's addresses."""
    total, inside = 0, False
    stop = memory.address + memory.capacity_bytes
    for line in Path("/proc/self/smaps").read_text(encoding="ascii").splitlines():
        first = line.split()[0]
        if "-" in first:
            start = int(first.split("-")[0], 16)
            inside = memory.address <= start < stop
        elif inside and first == "Rss:":
            total += int(line.split()[1]) << 10
    return total


@given(st.lists(st.integers(0, 40 * PAGE), min_size=1, max_size=8))
@settings(deadline=None)
def test_bytes_that_stay_keep_what_is_in_them_and_others_are_zeros(sizes):
    memory = CommittedRange(40 * PAGE)
    address, written = memory.address, 0
    for count, size in enumerate(sizes, start=1):
        assert memory.resize(size)
        assert memory.address == address
        assert size <= memory.size_bytes < size + PAGE
        kept = min(written, memory.size_bytes)
        array = memory.array()
        assert array.size == memory.size_bytes
        assert np.all(array[:kept] > 0)
        assert not np.any(array[kept:])
        array[:] = count
        written = memory.size_bytes


def test_what_is_given_back_takes_no_memory():
    memory = CommittedRange(16 * HUGE)
    assert resident_bytes(memory) == 0
    memory.resize(12 * HUGE)
    memory.array()[:] = 1
    assert resident_bytes(memory) == 12 * HUGE
    memory.resize(3 * HUGE + 5)
    assert memory.size_bytes == resident_bytes(memory) == 4 * HUGE
    memory.resize(PAGE)
    assert resident_bytes(memory) == PAGE
    memory.resize(0)
    assert resident_bytes(memory) == memory.size_bytes == 0


def test_huge_pages_within_given_bytes_go_back_and_are_zeros_when_touched_again():
    memory = CommittedRange(4 * HUGE)
    memory.resize(4 * HUGE)
    memory.array()[:] = 1
    assert memory.discard(5, 3 * HUGE + 7) == 2 * HUGE
    assert memory.discard(5, HUGE + 7) == 0
    assert (memory.size_bytes, resident_bytes(memory)) == (4 * HUGE, 2 * HUGE)
    assert not np.any(memory.array()[HUGE : 3 * HUGE])
    assert np.all(memory.array()[:HUGE] == 1)
    assert np.all(memory.array()[3 * HUGE :] == 1)


@pytest.mark.parametrize(("start", "stop"), [(2, 1), (0, PAGE + 1), (-1, 1)])
def test_bytes_that_are_not_there_cannot_be_given_back(start, stop):
    memory = CommittedRange(2 * PAGE)
    memory.resize(PAGE)
    with pytest.raises(ValueError, match=r"not among the|must be from"):
        memory.discard(start, stop)


def test_more_than_there_are_addresses_is_refused_and_changes_nothing():
    memory = CommittedRange(3 * PAGE - 1)
    assert memory.capacity_bytes == 3 * PAGE
    memory.resize(2 * PAGE)
    memory.array()[:] = 7
    assert not memory.resize(3 * PAGE + 1)
    assert np.all(memory.array() == 7)
    assert memory.size_bytes == 2 * PAGE


def test_addresses_that_the_system_lacks_are_a_memory_error():
    with pytest.raises(MemoryError):
        CommittedRange(1 << 56)
