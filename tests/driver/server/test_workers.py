"""Slow work runs for several clients at once, and for each client in order."""

import threading

import pytest

from tests.driver.test_run_permits import until
from tightship.driver.server.workers import Workers
from tightship.driver.service.events import Tick
from tightship.driver.types.status import Priority

PATIENCE_S = 60


class Jobs:
    """Jobs that wait at a gate of their own, and which of them have begun and ended."""

    def __init__(self):
        self.begun, self.gates = [], {}

    def job(self, name):
        gate = self.gates[name] = threading.Event()

        def do():
            self.begun.append(name)
            assert gate.wait(PATIENCE_S)
            return Tick()

        return do


@pytest.fixture
def jobs():
    made = Jobs()
    yield made
    for gate in made.gates.values():
        gate.set()


@pytest.fixture
def workers(jobs):
    made = Workers(2)
    yield made
    for gate in jobs.gates.values():
        gate.set()
    list(made.finish())
    made.close()


def test_a_client_with_much_to_do_leaves_a_thread_to_others(jobs, workers):
    for number in range(3):
        workers.do(jobs.job(f"mine {number}"), 1)
    workers.do(jobs.job("another's"), 2)
    until(lambda: len(jobs.begun) == 2)
    assert set(jobs.begun) == {"mine 0", "another's"}
    jobs.gates["mine 0"].set()
    until(lambda: len(jobs.begun) == 3)
    assert jobs.begun[2] == "mine 1"


def test_clients_take_permits(jobs):
    workers = Workers(1)
    for client in (1, 2, 3):
        for number in range(2):
            workers.do(jobs.job((client, number)), client)
    for gate in jobs.gates.values():
        gate.set()
    assert len(list(workers.finish())) == 6
    workers.close()
    assert jobs.begun == [(1, 0), (2, 0), (3, 0), (1, 1), (2, 1), (3, 1)]


def test_of_a_client_the_highest_priority_is_first(jobs, workers):
    workers.do(jobs.job("first"), 1)
    until(lambda: jobs.begun == ["first"])
    for name, priority in (("low", 0), ("medium", 1), ("high", 2), ("high too", 2)):
        workers.do(jobs.job(name), 1, Priority(priority))
    for gate in jobs.gates.values():
        gate.set()
    until(lambda: len(jobs.begun) == 5)
    assert jobs.begun[1:] == ["high", "high too", "medium", "low"]


def test_what_a_job_raises_comes_to_who_looks(workers):
    workers.do(lambda: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        list(workers.finish())


def test_jobs_are_done_where_no_further_thread_starts(monkeypatch):
    workers, done = Workers(3), []

    def refuse(_):
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", refuse)
    for client in range(4):
        workers.do(lambda client=client: done.append(client), client)
    list(workers.finish())
    workers.close()
    assert sorted(done) == [0, 1, 2, 3]
