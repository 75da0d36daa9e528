"""Connections that are being made, and which of them make room."""

import asyncio

from tightship.driver.oip.http import arrivals as module
from tightship.driver.oip.http.arrivals import Arrivals


def test_the_oldest_handshake_of_the_address_with_most_makes_room(monkeypatch):
    now_ns = 0
    monkeypatch.setattr(module, "monotonic_ns", lambda: now_ns)

    async def run():
        nonlocal now_ns
        arrivals = Arrivals(print)
        tasks = []
        for peer in ("one", "many", "many", "one", "many"):
            tasks.append(asyncio.create_task(asyncio.sleep(60)))
            arrivals.add(tasks[-1], peer, bool)
            now_ns += 1
        assert not arrivals.make_room()  # each has had no time yet
        now_ns += 300_000_000
        assert [arrivals.make_room() for _ in range(3)] == [True] * 3
        assert len(arrivals) == 2
        await asyncio.sleep(0)
        ended = [task.cancelled() for task in tasks]
        await arrivals.end()
        assert all(task.cancelled() for task in tasks)
        return ended

    assert asyncio.run(run()) == [True, True, True, False, False]


def test_an_error_is_told_once_and_an_end_is_not():
    told = []

    async def fail():
        raise OSError("no handshake")

    async def run():
        arrivals = Arrivals(lambda peer, error: told.append((peer, str(error))))
        for steps in (fail(), asyncio.sleep(0)):
            arrivals.add(asyncio.create_task(steps), "one", bool)
        await asyncio.sleep(0.01)
        return len(arrivals)

    assert asyncio.run(run()) == 0
    assert told == [("one", "no handshake")]


def test_a_connection_without_a_handshake_is_made_whatever_happens(monkeypatch):
    now_ns = 0
    monkeypatch.setattr(module, "monotonic_ns", lambda: now_ns)

    async def run():
        nonlocal now_ns
        arrivals = Arrivals(print, have_handshakes=False)
        task = asyncio.create_task(asyncio.sleep(0.01, "made"))
        arrivals.add(task, "one", bool)
        now_ns += 300_000_000
        assert not arrivals.make_room()
        await arrivals.end()
        return task.result(), len(arrivals)

    assert asyncio.run(run()) == ("made", 0)


def test_a_connection_whose_handshake_is_done_is_not_ended(monkeypatch):
    now_ns = 0
    monkeypatch.setattr(module, "monotonic_ns", lambda: now_ns)

    async def run():
        nonlocal now_ns
        arrivals = Arrivals(print)
        made, other = (asyncio.create_task(asyncio.sleep(0.01, "made")) for _ in range(2))
        arrivals.add(made, "one", lambda: True)
        arrivals.add(other, "one", lambda: False)
        now_ns += 300_000_000
        assert [arrivals.make_room(), arrivals.make_room()] == [True, False]
        await arrivals.end()
        return made.result(), other.cancelled()

    assert asyncio.run(run()) == ("made", True)
