"""The driver's side of a ring: which calls it answers there, and until when."""

import mmap
import os
import threading
from contextlib import contextmanager

import pytest

from tests.driver.server.test_call_cache import ANSWER, NAMES, Setup, call_of
from tightship._core import RingCaller
from tightship.driver.memory.descriptor import new_segment
from tightship.driver.protocol.messages import RING_BYTES

SESSION, SLOTS, TRIES_MAX = 5, 4, 20_000


class Attended(Setup):
    """A ring beside the socket; a thread answers both until it is stopped."""

    def __init__(self):
        super().__init__()
        memory = new_segment(RING_BYTES)
        self.ring, self.memory = RingCaller(memory), mmap.mmap(memory, RING_BYTES)
        self.repeats.set_polling(1)
        self.repeats.open_ring(self.file, memory)
        os.close(memory)
        self.remember(SESSION + 1, b"other session")
        both = call_of(0, b"long"), ANSWER + bytes(1020)
        run = self.context, self.steps, self.stop, self.metrics, NAMES
        self.repeats.remember(self.file, SESSION, both, *run)

    def call(self, body):
        """Call by the socket, then by the ring; return the ring's answer, if any."""
        self.client.send(call_of(7))
        assert self.client.recv(2000) == numbered(7)
        self.y[...] = -1
        answer = self.ring.call(call_of(8, body))
        return self.client.recv(2000) if answer == b"" else answer

    def is_answered(self, body):
        """Return whether a call is answered by the ring, once a thread polls it."""
        for _ in range(TRIES_MAX):
            answer = self.call(body)
            if answer is not None and answer != RingCaller.ELSEWHERE:
                assert answer == numbered(8)
                assert self.y.min() > 0
                return True
            if answer or any(map(self.is_refused, range(SLOTS))):
                return False
        pytest.fail("No thread polls the ring.")

    def is_refused(self, slot):
        start = 64 + 1024 * (2 * slot + 1)
        return self.memory[start : start + 5] == b"\1\0\0\0" + RingCaller.ELSEWHERE


@contextmanager
def serving(setup):
    thread = threading.Thread(target=setup.repeats.next)
    thread.start()
    try:
        yield
    finally:
        setup.client.send(b"the end")
        thread.join()


def numbered(number):
    return ANSWER[:8] + number.to_bytes(8, "little") + ANSWER[16:]


@pytest.fixture
def setup():
    made = Attended()
    yield made
    made.repeats.close(made.file)
    made.close()


@pytest.mark.parametrize(
    ("body", "is_answered"),
    [(b"body", True), (b"long", False), (b"other session", True), (b"unknown", False)],
)
def test_a_ring_answers_what_is_known_and_fits_a_slot(setup, body, is_answered):
    with serving(setup):
        assert setup.is_answered(body) is is_answered
        setup.client.send(call_of(9, b"long"))
        assert len(setup.client.recv(4096)) == len(ANSWER) + 1020


def test_the_ring_of_a_connection_that_has_ended_is_not_polled(setup):
    with serving(setup):
        assert setup.is_answered(b"body")
        setup.repeats.close(setup.file)
        assert setup.memory[:4] == bytes(4)
        setup.repeats.open(setup.file)
        assert {setup.call(b"body") for _ in range(300)} == {None}


def test_no_ring_is_polled_if_no_thread_may(setup):
    setup.repeats.set_polling(0)
    with serving(setup):
        assert {setup.call(b"body") for _ in range(300)} == {None}
