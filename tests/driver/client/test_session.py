"""A client's connection, with answers as a driver would send them."""

import os
import socket

import pytest

from tightship._core import RingCaller
from tightship.driver.client.session import CachedCall, Session
from tightship.driver.protocol import messages as m
from tightship.driver.protocol.channel import send
from tightship.driver.protocol.codec import encode_reply
from tightship.driver.protocol.replies import Done, Failed, Launched
from tightship.driver.types.status import ErrorStatus
from tightship.errors import DriverError


@pytest.fixture
def ends(tmp_path):
    """A session, and the driver's end of its connection."""
    path = tmp_path / "driver.sock"
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as listener:
        listener.bind(str(path))
        listener.listen()
        session = Session(path)
        driver, _ = listener.accept()
    yield session, driver
    driver.close()
    session.close()


@pytest.mark.parametrize("is_repeated", [False, True])
def test_answers_to_calls_that_were_interrupted_are_passed_over(ends, is_repeated):
    session, driver = ends
    session._number = 2
    late = os.memfd_create("late")
    before = len(os.listdir("/proc/self/fd"))
    send(driver, encode_reply(Launched(5), 1), [late])
    send(driver, encode_reply(Launched(5), 2), [late])
    driver.send(RingCaller.ELSEWHERE)
    send(driver, encode_reply(Done(), 3))
    call = m.ReleaseModel(7)
    answer = session.repeat(CachedCall(call)) if is_repeated else session.exchange(call)[0]
    assert answer == Done()
    assert len(os.listdir("/proc/self/fd")) <= before
    os.close(late)


@pytest.mark.parametrize("is_unread", [False, True])
def test_what_the_driver_said_before_it_hung_up_is_the_reason(ends, is_unread):
    session, driver = ends
    if is_unread:
        session._socket.send(b"a call")
    send(driver, encode_reply(Failed(ErrorStatus.RESOURCE_EXHAUSTED_TRANSIENT, "Too many."), 0))
    driver.close()
    with pytest.raises(DriverError, match="Too many") as caught:
        session.exchange(m.ReleaseModel(7))
    assert caught.value.status == ErrorStatus.RESOURCE_EXHAUSTED_TRANSIENT
    with pytest.raises(DriverError, match="is gone"):
        session.exchange(m.ReleaseModel(7))


class Ring:
    """One whose call is taken, and answered by the socket."""

    def call(self, _):
        return b""


@pytest.mark.parametrize("answers", [[3], [None, 3], [1, 2, 3], [2, None, 2, 3]])
def test_who_sleeps_is_answered_by_the_socket_or_calls_there(ends, answers):
    session, driver = ends
    session._number = 2
    for number in answers:
        driver.send(RingCaller.ELSEWHERE if number is None else encode_reply(Done(), number))
    call = CachedCall(m.ReleaseModel(7))
    session._ring = Ring()
    assert session.repeat(call) == Done()
    driver.setblocking(False)
    if None in answers:
        assert driver.recv(100) == call.message((3).to_bytes(8, "little"))
    with pytest.raises(BlockingIOError):
        driver.recv(100)
