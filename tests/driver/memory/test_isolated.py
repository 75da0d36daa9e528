"""Bytes of a file that another process maps, which may die of it."""

import itertools
import os
import signal
import threading
import time
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.at_once import at_once
from tightship.driver.memory import isolated, isolated_process, isolated_worker
from tightship.driver.memory.file_prober import FileProber
from tightship.driver.memory.isolated_process import IsolatedProcess
from tightship.driver.memory.mappings import Mappings
from tightship.driver.types.pools import Pool, PoolMode
from tightship.driver.types.request import Extent
from tightship.driver.types.status import ErrorStatus
from tightship.errors import DriverError

PAGE = 4096
STAGING = isolated_worker.STAGING_BYTES
PATIENCE_S = 60.0


NUMBERS = itertools.count(1)


def new_pool(size_bytes, protection=3):
    """The pages after the first of a file that has no seals."""
    file = os.memfd_create("unsealed")
    os.ftruncate(file, PAGE + size_bytes)
    extent, mode = Extent((1, file), PAGE, size_bytes), PoolMode.ISOLATED
    return Pool(next(NUMBERS), "mmap_fd", extent, protection, mode, file, is_decodable=True)


@pytest.fixture(scope="module")
def mappings():
    """Waits for its processes as long as a test may take, unless one is set otherwise."""
    kept = Mappings(FileProber(PATIENCE_S))
    with pytest.MonkeyPatch.context() as patient:
        for name in ("PATIENCE_S", "REAP_S"):
            patient.setattr(isolated_process, name, PATIENCE_S)
        yield kept
    kept.close()


def fails(call, *arguments):
    with pytest.raises(DriverError) as caught:
        call(*arguments)
    return caught.value.status == ErrorStatus.GENERAL_FAILURE


SIZES = st.integers(1, 9) | st.sampled_from([STAGING - 1, STAGING, STAGING + 1, 2 * STAGING + 3])


@settings(max_examples=20)
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


def test_a_file_that_is_cut_within_a_page_fails(mappings):
    cut = new_pool(PAGE)
    for _ in range(2):
        os.ftruncate(cut.handle, 2 * PAGE)
        assert mappings.read(cut, 0, 100).sum() == 0
        os.ftruncate(cut.handle, PAGE + 99)
        assert mappings.read(cut, 0, 99).sum() == 0
        assert fails(mappings.read, cut, 0, 100)
        assert fails(mappings.write, cut, 99, np.zeros(1, np.uint8))


def test_what_cannot_be_mapped_is_refused(mappings):
    short = new_pool(PAGE)
    os.ftruncate(short.handle, PAGE)
    assert fails(mappings.check, short)
    assert fails(mappings.read, short, 0, 1)
    assert fails(mappings.write, new_pool(PAGE, protection=1), 0, np.ones(1, np.uint8))


def idle_worker(mappings, pool):
    """The process that the next order goes to, with a pool mapped."""
    mappings.check(pool)
    (worker,) = [each for each in mappings._isolated._idle if pool.identifier in each.pools]
    return worker


def stop(worker):
    """Stop it from doing anything, as soon as the system has delivered the signal."""
    os.kill(worker.process.pid, signal.SIGSTOP)
    os.waitid(os.P_PID, worker.process.pid, os.WSTOPPED | os.WNOWAIT)


def test_a_file_that_does_not_answer_fails_and_its_process_is_killed(mappings, monkeypatch):
    monkeypatch.setattr(IsolatedProcess, "_is_stopped", False)
    pool, other = new_pool(PAGE), new_pool(PAGE)
    worker = idle_worker(mappings, pool)
    worker.wait_at_most(0.01)
    stop(worker)
    assert fails(mappings.read, pool, 0, 1)
    assert worker.process.returncode == -signal.SIGKILL
    assert mappings.read(other, 0, 1).sum() == 0
    assert mappings.read(pool, 0, 1).sum() == 0


@pytest.mark.parametrize("end", [signal.SIGKILL, signal.SIGSTOP, signal.SIGTERM])
def test_a_process_that_was_killed_or_stopped_fails_no_call(mappings, end):
    pool = new_pool(PAGE)
    os.pwrite(pool.handle, b"x", PAGE)
    worker = idle_worker(mappings, pool)
    if end == signal.SIGSTOP:
        worker.wait_at_most(0.01)
        stop(worker)
    else:
        os.kill(worker.process.pid, end)
    assert mappings.read(pool, 0, 1) == ord("x")
    assert worker.process.returncode == -(signal.SIGKILL if end == signal.SIGSTOP else end)


def test_a_process_that_cannot_be_killed_is_waited_for_no_longer(mappings, monkeypatch):
    pool = new_pool(PAGE)
    worker = idle_worker(mappings, pool)
    with monkeypatch.context() as patched:
        patched.setattr(isolated_process, "REAP_S", 0.01)
        patched.setattr(worker.process, "kill", lambda: None)
        worker.wait_at_most(0.01)
        stop(worker)
        assert fails(mappings.read, pool, 0, 1)
        assert mappings._isolated._hanging == [worker.process]
        patched.setattr(isolated, "HANGING_MAX", 1)
        mappings._isolated.close()
        assert fails(mappings.read, pool, 0, 1)
        os.kill(worker.process.pid, signal.SIGKILL)
        worker.process.wait()
        assert mappings.read(pool, 0, 1).sum() == 0


def test_a_process_that_waits_delays_no_other_call(mappings):
    stuck, other = new_pool(PAGE), new_pool(PAGE)
    worker = idle_worker(mappings, stuck)
    stop(worker)
    waits = threading.Thread(target=mappings.read, args=(stuck, 0, 1))
    waits.start()
    while worker not in mappings._isolated._busy:
        time.sleep(0.001)
    assert mappings.read(other, 0, 1).sum() == 0
    mappings.drop(other)
    assert worker in mappings._isolated._busy
    os.kill(worker.process.pid, signal.SIGCONT)
    waits.join()


def test_what_cannot_be_dropped_at_once_is_dropped_later(mappings):
    pools = [new_pool(PAGE) for _ in range(300)]
    worker = idle_worker(mappings, pools[0])
    for pool in pools:
        worker.have(pool)
    stop(worker)
    for pool in pools:
        mappings.drop(pool)
    assert mappings._isolated._gone  # its socket is full
    os.kill(worker.process.pid, signal.SIGCONT)
    while mappings._isolated._gone:
        mappings.check(new_pool(PAGE))
    mappings.check(new_pool(PAGE))


def test_threads_read_each_their_own(mappings):
    pools = [new_pool(PAGE) for _ in range(4)]
    for index, pool in enumerate(pools):
        mappings.write(pool, 0, np.full(PAGE, index, np.uint8))
    wrong = []

    def read(index):
        for _ in range(20):
            wrong.extend(other for other in mappings.read(pools[index], 0, PAGE) if other != index)

    at_once(read, range(4))
    assert wrong == []


def test_the_worker_unmaps_what_is_dropped(mappings):
    pool = new_pool(PAGE)
    worker = idle_worker(mappings, pool)
    maps = Path(f"/proc/{worker.process.pid}/maps")
    count = maps.read_text().count("unsealed")
    mappings.drop(pool)
    worker.have(new_pool(PAGE))
    assert maps.read_text().count("unsealed") == count
