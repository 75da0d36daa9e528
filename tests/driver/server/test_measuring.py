"""Resident bytes of pools, out of what the kernel says of the whole process."""

import errno
import mmap
import os
from itertools import pairwise

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tightship.driver.memory.file_prober import FileProber
from tightship.driver.memory.mappings import Mappings
from tightship.driver.server import measuring
from tightship.driver.server.measuring import Resident, mapped_bytes, measure, residents
from tightship.driver.service.effects import Measure
from tightship.driver.service.events import Measured
from tightship.driver.types.snapshot import DRIVER, Holdings, Snapshot
from tightship.driver.types.status import ErrorStatus


def test_what_is_touched_of_a_mapping_is_resident():
    file = os.memfd_create("resident")
    size = 64 * mmap.PAGESIZE
    os.ftruncate(file, size)
    pages = np.frombuffer(mmap.mmap(file, size), np.uint8)
    start = pages.ctypes.data
    assert mapped_bytes({5: (start, start + size)}, tuple(residents())) == {5: 0}
    pages[: size // 2] = 1
    assert mapped_bytes({5: (start, start + size)}, tuple(residents())) == {5: size // 2}
    os.close(file)


PARTS = st.lists(st.tuples(st.integers(0, 9), st.integers(1, 9)), min_size=1, max_size=8)


def laid_out(parts):
    """Ranges one after another with gaps between them."""
    place, found = 0, []
    for gap, length in parts:
        found.append((place + gap, place + gap + length))
        place += gap + length
    return found


@given(PARTS, st.data())
def test_mappings_that_the_kernel_has_joined_are_shared_out(parts, data):
    ranges = laid_out(parts)
    stop = ranges[-1][1]
    cuts = [0, *sorted(data.draw(st.sets(st.integers(1, stop), max_size=5)) | {stop})]
    found = [Resident(a, b, (b - a) * 7) for a, b in pairwise(cuts)]
    expected = {number: (b - a) * 7 for number, (a, b) in enumerate(ranges)}
    assert mapped_bytes(dict(enumerate(ranges)), found) == expected


def test_what_the_kernel_does_not_say_is_a_failure_of_the_call(monkeypatch):
    def refused():
        raise OSError(errno.EMFILE, "Too many open files")

    monkeypatch.setattr(measuring, "residents", refused)
    asked = Measure(7, Snapshot(Holdings(DRIVER), ()), -1)
    answer = measure(asked, Mappings(FileProber()), None, FileProber())
    assert answer == Measured(7, ErrorStatus.GENERAL_FAILURE)


def test_a_snapshot_without_memory_is_refused_and_may_be_asked_for_again(monkeypatch):
    def lacking():
        raise MemoryError

    monkeypatch.setattr(measuring, "residents", lacking)
    asked = Measure(7, Snapshot(Holdings(DRIVER), ()), -1)
    answer = measure(asked, Mappings(FileProber()), None, FileProber())
    assert answer == Measured(7, ErrorStatus.RESOURCE_EXHAUSTED_TRANSIENT)
