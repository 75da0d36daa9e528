"""Alarms: called when they are due, in that order, and not if they are cancelled."""

import threading
from queue import SimpleQueue

import pytest

from tests.driver.test_run_permits import until
from tightship.driver.memory.timer_thread import TimerThread

LONG_S = 3600


def watchers(before):
    """Timer threads that were not there before."""
    return [each for each in threading.enumerate() if each not in before and "_watch" in each.name]


@pytest.fixture
def gate():
    """Event at which a timer waits, which keeps later ones from firing until it is set."""
    made = threading.Event()
    yield made
    made.set()


def test_timers_fire_in_the_order_in_which_they_are_due(gate):
    timers, fired = TimerThread(), SimpleQueue()
    timers.set(0, lambda: gate.wait(60))
    timers.set(0, lambda: fired.put("second"))
    timers.set(-60, lambda: fired.put("first"))
    gate.set()
    assert [fired.get(timeout=60), fired.get(timeout=60)] == ["first", "second"]


def test_a_cancelled_timer_does_not_fire(gate):
    timers, fired = TimerThread(), SimpleQueue()
    timers.set(0, lambda: gate.wait(60))
    number = timers.set(0, lambda: fired.put("cancelled"))
    timers.set(0, lambda: fired.put("kept"))
    timers.cancel(number)
    timers.cancel(number)
    gate.set()
    assert fired.get(timeout=60) == "kept"
    assert fired.empty()


def test_a_timer_that_is_due_before_the_one_waited_for_is_in_time():
    timers, fired = TimerThread(), SimpleQueue()
    late = timers.set(LONG_S, lambda: fired.put("late"))
    timers.set(0, lambda: fired.put("early"))
    assert fired.get(timeout=60) == "early"
    timers.cancel(late)
    timers.set(0, lambda: None)  # so that the thread sees that it is not needed any more


def test_one_thread_watches_them_all_and_ends_with_the_last():
    timers, fired, before = TimerThread(), SimpleQueue(), set(threading.enumerate())
    for _ in range(2):
        numbers = [timers.set(LONG_S, lambda: None) for _ in range(100)]
        assert len(watchers(before)) == 1
        for number in numbers:
            timers.cancel(number)
        timers.set(0, lambda: fired.put(None))
        fired.get(timeout=60)
        until(lambda: not watchers(before))


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_one_that_fails_does_not_keep_later_ones_from_ringing():
    timers, fired, before = TimerThread(), SimpleQueue(), set(threading.enumerate())
    timers.set(0, lambda: 1 // 0)
    until(lambda: not watchers(before))
    timers.set(0, lambda: fired.put("later"))
    assert fired.get(timeout=60) == "later"


def test_if_no_thread_can_start_the_caller_gets_an_error_and_the_next_timer_starts_it(monkeypatch):
    timers, fired = TimerThread(), SimpleQueue()

    def refuse(_thread):
        raise RuntimeError

    with monkeypatch.context() as without:
        without.setattr(threading.Thread, "start", refuse)
        with pytest.raises(RuntimeError):
            timers.set(LONG_S, lambda: None)
    timers.set(0, lambda: fired.put("next"))
    assert fired.get(timeout=60) == "next"
