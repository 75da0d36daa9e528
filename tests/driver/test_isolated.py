"""Bytes of a file that another process maps, which may die of it."""

import itertools
import os
import signal
import threading
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tightship.driver.memory import isolated, isolated_worker
from tightship.driver.memory.mappings import Mappings
from tightship.driver.memory.slow_files import SlowFiles
from tightship.driver.rules.pools import Pool, PoolMode
from tightship.driver.rules.request import Extent
from tightship.driver.rules.status import ErrorStatus
from tightship.errors import DriverError

PAGE = 4096
STAGING = isolated_worker.STAGING_BYTES


NUMBERS = itertools.count(1)


def new_pool(size_bytes, protection=3):
    """The pages after the first of a file that nobody has sealed."""
    file = os.memfd_create("unsealed")
    os.ftruncate(file, PAGE + size_bytes)
    extent, mode = Extent((1, file), PAGE, size_bytes), PoolMode.ISOLATED
    return Pool(next(NUMBERS), "mmap_fd", extent, protection, mode, file, is_decodable=True)


@pytest.fixture(scope="module")
def mappings():
    kept = Mappings(SlowFiles())
    yield kept
    kept.close()


def fails(call, *arguments):
    with pytest.raises(DriverError) as caught:
        call(*arguments)
    return caught.value.status == ErrorStatus.GENERAL_FAILURE


SIZES = st.integers(1, 9) | st.sampled_from([STAGING - 1, STAGING, STAGING + 1, 2 * STAGING + 3])


@settings(
    max_examples=20, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(st.integers(0, 100), SIZES, st.integers(0, 255))
def test_bytes_are_read_and_written_where_they_are(mappings, start, size, first):
    pool = new_pool(start + size + 5)
    data = (np.arange(size) % 251 + first).astype(np.uint8)
    mappings.write(pool, start, data)
    around = os.pread(pool.handle, start, PAGE) + os.pread(pool.handle, 5, PAGE + start + size)
    assert not any(around)
    assert os.pread(pool.handle, size, PAGE + start) == data.tobytes()
    np.testing.assert_array_equal(mappings.read(pool, start, size), data)
    mappings.drop(pool)


def test_a_file_that_is_cut_fails_and_the_next_is_read(mappings):
    cut, whole = new_pool(PAGE), new_pool(PAGE)
    for _ in range(3):
        os.ftruncate(cut.handle, 2 * PAGE)
        assert mappings.read(cut, 0, 8).sum() == 0
        os.ftruncate(cut.handle, PAGE)
        assert fails(mappings.read, cut, 0, 8)
        os.ftruncate(cut.handle, 2 * PAGE)
        mappings.read(cut, 0, 8)
        os.ftruncate(cut.handle, PAGE)
        assert fails(mappings.write, cut, 0, np.ones(8, np.uint8))
        assert mappings.read(whole, 0, 8).sum() == 0


def test_what_cannot_be_mapped_is_refused(mappings):
    short = new_pool(PAGE)
    os.ftruncate(short.handle, PAGE)
    assert fails(mappings.check, short)
    assert fails(mappings.read, short, 0, 1)
    assert fails(mappings.write, new_pool(PAGE, protection=1), 0, np.ones(1, np.uint8))


def test_a_worker_that_takes_too_long_is_killed(mappings, monkeypatch):
    pool = new_pool(PAGE)
    mappings.read(pool, 0, 1)
    worker = mappings._isolated._worker
    monkeypatch.setattr(isolated, "PATIENCE_S", 0.01)
    worker.connection.settimeout(0.01)
    os.kill(worker.process.pid, signal.SIGSTOP)
    assert fails(mappings.read, pool, 0, 1)
    assert worker.process.returncode == -signal.SIGKILL


def test_threads_read_each_their_own(mappings):
    pools = [new_pool(PAGE) for _ in range(4)]
    for index, pool in enumerate(pools):
        mappings.write(pool, 0, np.full(PAGE, index, np.uint8))
    wrong = []

    def read(index):
        for _ in range(20):
            wrong.extend(other for other in mappings.read(pools[index], 0, PAGE) if other != index)

    threads = [threading.Thread(target=read, args=(index,)) for index in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


def test_the_worker_unmaps_what_is_dropped(mappings):
    pool = new_pool(PAGE)
    mappings.check(pool)
    worker = mappings._isolated._worker
    maps = Path(f"/proc/{worker.process.pid}/maps")
    count = maps.read_text().count("unsealed")
    mappings.drop(pool)
    assert maps.read_text().count("unsealed") == count - 1
