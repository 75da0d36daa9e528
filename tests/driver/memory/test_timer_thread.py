"""Alarms: called when they are due, in that order, and not if they are cancelled."""

import threading
from queue import SimpleQueue

import pytest

from tests.driver.test_run_permits import until
from tightship.driver.memory.timer_thread import TimerThread

LONG_S = 3600


def watchers(before):
    """Threads that watch alarms and were not there before."""
    return [each for each in threading.enumerate() if each not in before and "_watch" in each.name]


@pytest.fixture
def gate():
    """Event at which an alarm waits, which keeps later ones from ringing until it is set."""
    made = threading.Event()
    yield made
    made.set()


def test_alarms_ring_in_the_order_in_which_they_are_due(gate):
    alarms, rung = TimerThread(), SimpleQueue()
    alarms.set(0, lambda: gate.wait(60))
    alarms.set(0, lambda: rung.put("second"))
    alarms.set(-60, lambda: rung.put("first"))
    gate.set()
    assert [rung.get(timeout=60), rung.get(timeout=60)] == ["first", "second"]


def test_a_cancelled_alarm_does_not_ring(gate):
    alarms, rung = TimerThread(), SimpleQueue()
    alarms.set(0, lambda: gate.wait(60))
    number = alarms.set(0, lambda: rung.put("cancelled"))
    alarms.set(0, lambda: rung.put("kept"))
    alarms.cancel(number)
    alarms.cancel(number)
    gate.set()
    assert rung.get(timeout=60) == "kept"
    assert rung.empty()


def test_an_alarm_that_is_due_before_the_one_waited_for_is_in_time():
    alarms, rung = TimerThread(), SimpleQueue()
    late = alarms.set(LONG_S, lambda: rung.put("late"))
    alarms.set(0, lambda: rung.put("early"))
    assert rung.get(timeout=60) == "early"
    alarms.cancel(late)
    alarms.set(0, lambda: None)  # so that the thread sees that it is not needed any more


def test_one_thread_watches_them_all_and_ends_with_the_last():
    alarms, rung, before = TimerThread(), SimpleQueue(), set(threading.enumerate())
    for _ in range(2):
        numbers = [alarms.set(LONG_S, lambda: None) for _ in range(100)]
        assert len(watchers(before)) == 1
        for number in numbers:
            alarms.cancel(number)
        alarms.set(0, lambda: rung.put(None))
        rung.get(timeout=60)
        until(lambda: not watchers(before))


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_one_that_fails_does_not_keep_later_ones_from_ringing():
    alarms, rung, before = TimerThread(), SimpleQueue(), set(threading.enumerate())
    alarms.set(0, lambda: 1 // 0)
    until(lambda: not watchers(before))
    alarms.set(0, lambda: rung.put("later"))
    assert rung.get(timeout=60) == "later"


def test_where_no_thread_can_start_the_caller_knows_and_the_next_alarm_starts_it(monkeypatch):
    alarms, rung = TimerThread(), SimpleQueue()

    def refuse(_thread):
        raise RuntimeError

    with monkeypatch.context() as without:
        without.setattr(threading.Thread, "start", refuse)
        with pytest.raises(RuntimeError):
            alarms.set(LONG_S, lambda: None)
    alarms.set(0, lambda: rung.put("next"))
    assert rung.get(timeout=60) == "next"
