"""Pool that starts threads only when those that it has are held up."""

import threading

import pytest

from tightship.driver.oip.grpc.sparing_threads import FEW, SparingThreads

COUNT = 12


class Timers:
    """Calls that are due when a test says so."""

    def __init__(self):
        self.calls = []

    def set(self, wait_s, call):
        assert wait_s > 0
        self.calls.append(call)

    def ring(self):
        (call,) = self.calls
        self.calls.clear()
        call()


class Pool:
    """A pool, and work in it that waits for a gate."""

    def __init__(self):
        self.timers, self.gate, self.begun = Timers(), threading.Event(), threading.Semaphore(0)
        self.threads = SparingThreads(COUNT, "sparing", self.timers)

    def block(self, count):
        return [self.threads.submit(self._wait) for _ in range(count)]

    def _wait(self):
        self.begun.release()
        assert self.gate.wait(60)

    def begin(self, count):
        for _ in range(count):
            assert self.begun.acquire(timeout=60)


@pytest.fixture
def pool():
    found = Pool()
    yield found
    found.gate.set()
    found.threads.shutdown()


def test_quick_work_is_done_by_few_threads(pool):
    for number in range(200):
        assert pool.threads.submit(lambda number=number: number).result(60) == number
    assert pool.threads.thread_count <= FEW


def test_work_behind_threads_that_are_held_up_gets_threads_of_its_own(pool):
    blocked = pool.block(FEW)
    pool.begin(FEW)
    more = pool.block(3)
    assert pool.threads.thread_count == FEW
    pool.timers.ring()
    pool.begin(3)
    assert pool.threads.thread_count == FEW + 3
    pool.gate.set()
    for each in blocked + more:
        each.result(60)


def test_no_thread_is_started_while_work_is_taken(pool):
    pool.block(FEW)
    pool.begin(FEW)
    pool.block(FEW)
    pool.gate.set()  # the threads take what waits
    pool.begin(FEW)
    pool.timers.ring()
    assert pool.threads.thread_count == FEW
    assert pool.timers.calls == []


def test_there_are_never_more_threads_than_the_limit(pool):
    pool.block(FEW)
    pool.begin(FEW)
    pool.block(2 * COUNT)
    pool.timers.ring()
    pool.begin(COUNT - FEW)
    assert pool.threads.thread_count == COUNT
    pool.timers.calls.clear()


def test_without_a_thread_for_timers_work_gets_threads_at_once(pool):
    def fails(*_):
        raise RuntimeError("can't start new thread")

    pool.timers.set = fails
    pool.block(FEW)
    pool.begin(FEW)
    pool.block(1)
    pool.begin(1)
    assert pool.threads.thread_count == FEW + 1
