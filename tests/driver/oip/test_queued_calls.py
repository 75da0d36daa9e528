"""Calls that wait for permits without threads: their order, and what becomes of permits."""

import gc
import threading
import weakref
from functools import partial

import numpy as np
import pytest

from tests.driver.test_run_permits import until
from tightship._core import RequestMetrics, RunPermits
from tightship.driver.oip.caller import Caller
from tightship.driver.oip.queued_calls import QueuedCalls


class Queue:
    """A queue of one permit, and the names of the calls that were made, with a permit or not."""

    def __init__(self, count=1):
        self.permits, self.metrics = RunPermits(count), RequestMetrics()
        self.calls = QueuedCalls(self.permits)
        self.made = []

    def enter(self, name, account="one", work=lambda: None):
        """Enter a call of an account, which does some work on its permit."""
        caller = Caller(self.permits, account)

        def call():
            place = caller.place("model", self.metrics)
            has_permit = caller.take(place, None)
            self.made.append((name, has_permit))
            if has_permit:
                work()
                caller.give_back(place)

        return self.calls.enter(call, caller, "model", self.metrics)


@pytest.fixture
def queue():
    found = Queue()
    yield found
    found.calls.close()


def test_accounts_alternate_and_one_thread_makes_all_calls(queue):
    assert queue.permits.take_free()
    threads = set()
    for name, account in (("a", "one"), ("b", "one"), ("c", "one"), ("d", "two")):
        queue.enter(name, account, lambda: threads.add(threading.get_ident()))
    assert (queue.permits.waiting_count, queue.made) == (4, [])
    queue.permits.give_back()
    until(lambda: len(queue.made) == 4)
    assert queue.made == [("a", True), ("d", True), ("b", True), ("c", True)]
    until(lambda: queue.permits.is_free)
    assert len(threads) == 1


def test_a_call_that_gives_up_is_made_without_a_permit(queue):
    assert queue.permits.take_free()
    number = queue.enter("late")
    queue.calls.give_up(number)
    assert (queue.made, queue.permits.waiting_count) == ([("late", False)], 0)
    queue.calls.give_up(number)
    queue.permits.give_back()
    queue.enter("next")
    until(lambda: len(queue.made) == 2)
    assert queue.made[1] == ("next", True)


def test_a_permit_that_comes_too_late_is_passed_on(queue):
    begun, may_end, took = threading.Event(), threading.Event(), queue.permits.take_free()
    assert took

    def occupy():
        begun.set()
        assert may_end.wait(30)

    queue.enter("first", work=occupy)
    queue.permits.give_back()
    assert begun.wait(30)
    late, last = queue.enter("late"), queue.enter("last")
    queue.calls.give_up(late)
    assert queue.made[-1] == ("late", False)
    may_end.set()
    until(lambda: len(queue.made) == 3)
    assert queue.made[-1] == ("last", True)
    queue.calls.give_up(last)
    until(lambda: queue.permits.is_free)


def test_permits_that_calls_do_not_use_are_given_back(queue):
    caller = Caller(queue.permits)
    ended = threading.Event()
    queue.calls.enter(ended.set, caller, "model", queue.metrics)
    assert ended.wait(30)
    until(lambda: queue.permits.is_free)


def test_several_permits_have_as_many_threads():
    barrier, queue = threading.Barrier(3), Queue(count=3)
    for name in "abc":
        queue.enter(name, work=lambda: barrier.wait(30))
    until(lambda: len(queue.made) == 3 and queue.permits.taken_count == 0)
    queue.calls.close()
    queue.calls.close()


def test_a_call_for_which_there_is_no_thread_is_not_queued(queue, monkeypatch):
    monkeypatch.setattr(threading.Thread, "start", lambda _: (_ for _ in ()).throw(RuntimeError))
    assert queue.enter("none") is None
    monkeypatch.undo()
    assert queue.permits.is_free
    queue.enter("next")
    until(lambda: queue.made == [("next", True)])


def test_a_thread_that_waits_keeps_nothing_of_the_last_call(queue):
    body = np.zeros(1)
    kept = weakref.ref(body)
    queue.enter("large", work=partial(id, body))
    del body
    until(lambda: len(queue.made) == 1 and queue.permits.is_free)
    gc.disable()
    try:
        until(lambda: kept() is None)
    finally:
        gc.enable()
