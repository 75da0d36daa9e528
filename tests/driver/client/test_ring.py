"""The client's side of a ring, with a test as the driver."""

import mmap
import os
import threading

import pytest

from tightship._core import RingCaller
from tightship.driver.memory.descriptor import new_segment
from tightship.driver.protocol.messages import RING_BYTES

AWAY, ATTENDED, CALLED, ASLEEP = range(4)
SLOT_BYTES, SLOTS = 1024, 4
MESSAGE = bytes(range(16)) + b"body"


class Setup:
    """A ring, and its memory as the driver has it."""

    def __init__(self):
        file = new_segment(RING_BYTES)
        self.memory = mmap.mmap(file, RING_BYTES)
        self.ring = RingCaller(file)
        os.close(file)

    @property
    def turn(self):
        return int.from_bytes(self.memory[:4], "little")

    @turn.setter
    def turn(self, to):
        self.memory[:4] = to.to_bytes(4, "little")

    def slot(self, position):
        """The call of a position."""
        start = 64 + 2 * SLOT_BYTES * (position % SLOTS)
        size = int.from_bytes(self.memory[start : start + 4], "little")
        return self.memory[start + 4 : start + 4 + size]

    def answered(self, position, answer, size=None):
        """Return the reply to a call that a driver answers."""
        self.turn = ATTENDED
        start = 64 + SLOT_BYTES * (2 * (position % SLOTS) + 1)
        length = (len(answer) if size is None else size).to_bytes(4, "little")
        self.memory[start : start + 4 + len(answer)] = length + answer
        return in_time(self)


def in_time(setup):
    """The answer to a call, with the turn passed back in a thread of its own."""
    is_over = threading.Event()

    def pass_back():
        while not is_over.is_set():
            if setup.turn == CALLED:
                setup.turn = ATTENDED

    driver = threading.Thread(target=pass_back)
    driver.start()
    try:
        return setup.ring.call(MESSAGE)
    finally:
        is_over.set()
        driver.join()


@pytest.fixture
def setup():
    return Setup()


def test_both_sides_take_a_ring_to_be_as_large():
    assert RingCaller.SIZE_BYTES == RING_BYTES


@pytest.mark.parametrize("turn", [AWAY, CALLED, ASLEEP, 4, 2**32 - 1])
def test_nothing_is_called_through_a_ring_that_no_thread_polls(setup, turn):
    setup.turn = turn
    assert setup.ring.call(MESSAGE) is None
    assert setup.turn == turn


def test_a_call_longer_than_a_slot_goes_by_the_socket(setup):
    setup.turn = ATTENDED
    assert setup.ring.call(bytes(SLOT_BYTES - 3)) is None
    assert setup.turn == ATTENDED
    assert setup.ring.call(bytes(SLOT_BYTES - 4)) == b""
    assert setup.slot(0) == bytes(SLOT_BYTES - 4)


def test_a_call_without_an_answer_sleeps_and_takes_the_next_slot_each_time(setup):
    for position in range(3 * SLOTS + 1):
        setup.turn = ATTENDED
        message = MESSAGE + bytes([position])
        assert setup.ring.call(message) == b""
        assert setup.turn == ASLEEP
        assert setup.slot(position) == message


def test_answers_are_read_where_their_calls_are_all_around(setup):
    read = [setup.answered(position, bytes([position]) * 20) for position in range(40)]
    assert all(answer in (b"", bytes([position]) * 20) for position, answer in enumerate(read))
    assert any(read) or len(os.sched_getaffinity(0)) == 1


@pytest.mark.parametrize("size", [0, SLOT_BYTES - 3, 2**32 - 1])
def test_an_answer_of_no_length_that_a_slot_has_is_none(setup, size):
    assert {setup.answered(position, b"answer", size) for position in range(30)} <= {b"", None}


def test_a_client_that_changes_to_its_socket_says_so(setup):
    setup.turn = ATTENDED
    setup.ring.dismiss()
    assert setup.turn == AWAY
    setup.turn = ASLEEP
    setup.ring.dismiss()
    assert setup.turn == ASLEEP
