"""Repeated calls are answered by the native core, and only those."""

import array
import os
import select
import socket
import struct
import threading
from contextlib import suppress

import numpy as np
import pytest

import tightship
from tests.driver.native_driver import driver
from tests.small_models import dense, dense_result, relu_chain
from tightship._core import CallCache, RequestMetrics, RunPermits, StopFlag
from tightship.driver.protocol import messages as m
from tightship.driver.protocol.codec import encode
from tightship.driver.protocol.replies import Executed
from tightship.driver.server.call_cache import KEPT_MAX, ServerCallCache
from tightship.driver.service.effects import CacheCall
from tightship.driver.types.status import ErrorStatus
from tightship.errors import DriverError, InputError, StoppedError

ANSWER = b"\x01\x87\x00\x00\x04\x00\x00\x00" + bytes(8) + b"done"


NAMES = ("model", "account", "client", "")


def call_of(number, body=b"body"):
    return struct.pack("<BBHIQ", 1, 11, 0, len(body), number) + body


class Setup:
    """A socket that is watched, its other end, and a model that doubles what it reads."""

    def __init__(self):
        self.calls = select.epoll()
        self.permits, self.metrics = RunPermits(1), RequestMetrics()
        self.repeats = CallCache(self.calls.fileno(), self.permits)
        self.ours, self.client = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.client.settimeout(60)
        self.file = self.ours.fileno()
        self.repeats.open(self.file)
        self.model = tightship.load(relu_chain(1, 4))
        (_, shape) = self.model.input_types["v0"]
        self.x, self.y = np.ones(shape, np.float32), np.zeros(shape, np.float32)
        self.run = self.model.bind({"v0": self.x}, {"v1": self.y})
        self.stop = StopFlag()
        self.run.run(self.stop)
        self.context, self.steps = self.run.alone()
        self.remember()

    def remember(self, session=5, body=b"body"):
        both = call_of(0, body), ANSWER
        self.repeats.remember(
            self.file, session, both, self.context, self.steps, self.stop, self.metrics, NAMES
        )

    def handed_over(self):
        """Return the events not answered, after the answered ones."""
        self.client.send(b"the end")
        return self.repeats.next()

    def close(self):
        self.ours.close()
        self.client.close()
        self.calls.close()
        self.model.close()


@pytest.fixture
def setup():
    made = Setup()
    yield made
    made.close()


def test_a_known_call_runs_and_is_answered_under_its_number(setup):
    for number in (7, 2**64 - 1):
        setup.y[...] = -1
        setup.client.send(call_of(number))
        assert setup.handed_over() == (setup.file, select.EPOLLIN, b"")
        answer = setup.client.recv(100)
        assert answer == ANSWER[:8] + struct.pack("<Q", number) + ANSWER[16:]
        assert setup.y.min() > 0
        assert setup.ours.recv(100) == b"the end"
        setup.repeats.watch(setup.file, select.EPOLLIN)


@pytest.mark.parametrize(
    "data",
    [call_of(7, b"bodY"), call_of(7, b"body "), call_of(7)[:15], b"", call_of(7) + bytes(2000)],
    ids=["another", "longer", "short", "empty", "long"],
)
def test_any_other_call_is_left_on_the_socket(setup, data):
    setup.client.send(data)
    assert setup.repeats.next() == (setup.file, select.EPOLLIN, b"")
    assert setup.ours.recv(4096) == data


def test_a_call_with_files_is_left_with_them(setup):
    with open(os.devnull) as file:
        files = array.array("i", [file.fileno()])
        setup.client.sendmsg([call_of(7)], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, files)])
        assert setup.repeats.next() == (setup.file, select.EPOLLIN, b"")
        data, files, _, _ = socket.recv_fds(setup.ours, 100, 4)
        assert (data, len(files)) == (call_of(7), 1)
        os.close(files[0])


def test_while_another_endpoint_has_the_permit_a_call_goes_the_long_way(setup):
    assert setup.permits.take_free()
    setup.client.send(call_of(7))
    assert setup.repeats.next() == (setup.file, select.EPOLLIN, b"")
    setup.permits.give_back()
    setup.repeats.watch(setup.file, select.EPOLLIN)
    assert setup.handed_over() == (setup.file, select.EPOLLIN, b"")
    assert setup.client.recv(100).endswith(b"done")
    assert setup.permits.is_free


def test_once_stopped_a_call_goes_the_long_way(setup):
    setup.stop.set()
    setup.client.send(call_of(7))
    assert setup.repeats.next()[0] == setup.file
    assert setup.ours.recv(100) == call_of(7)


def test_what_python_runs_is_repeated_too_and_goes_the_long_way_when_it_raises(setup):
    runs = []

    def run():
        runs.append(None)
        if len(runs) == 2:
            raise StoppedError("It was stopped.")

    known = call_of(0, b"python")
    setup.repeats.remember_call(setup.file, 6, (known, ANSWER), run, setup.metrics, NAMES)
    setup.client.send(call_of(7, b"python"))
    setup.handed_over()
    assert setup.client.recv(100)[8:16] == struct.pack("<Q", 7)
    assert setup.ours.recv(100) == b"the end"
    setup.repeats.watch(setup.file, select.EPOLLIN)
    setup.client.send(call_of(8, b"python"))
    assert setup.repeats.next()[0] == setup.file
    assert setup.ours.recv(100) == call_of(8, b"python")
    assert len(runs) == 2
    setup.repeats.forget(setup.file, 6)


def test_arrays_are_copied_to_where_they_were_and_checked_each_time(tmp_path):
    data, weights = dense(batch=4)
    random = np.random.default_rng(2)
    with driver(tmp_path) as running, running.client() as client:
        model = client.prepare(data)
        kept = []
        for _ in range(20):
            x = random.standard_normal((4, 32), np.float32)
            kept.append((model.execute([x])[0], dense_result(x, weights)))
        for got, wanted in kept:
            np.testing.assert_allclose(got, wanted, rtol=1e-4, atol=1e-4)
        for wrong in (np.zeros((4, 31), "f4"), np.zeros((4, 32), "f8")):
            with pytest.raises(InputError, match="Input 0"):
                model.execute([wrong])
        with pytest.raises(InputError, match="2 inputs"):
            model.execute([x, x])
        model.close()
        with pytest.raises(DriverError):
            model.execute([x])


@pytest.mark.parametrize(("session", "is_known"), [(0, False), (5, False), (6, True)])
def test_a_session_is_forgotten_by_its_number(setup, session, is_known):
    setup.repeats.forget(setup.file, session)
    setup.repeats.forget(setup.file + 1, session)
    setup.client.send(call_of(7))
    setup.handed_over()
    assert (setup.ours.recv(100) == b"the end") == is_known


def test_while_a_connection_pauses_its_calls_go_the_long_way(setup):
    for number, is_known in ((7, False), (8, True)):
        (setup.repeats.resume if is_known else setup.repeats.pause)(setup.file)
        setup.repeats.pause(setup.file + 1)
        setup.client.send(call_of(number))
        if is_known:
            setup.handed_over()
        else:
            assert setup.repeats.next()[0] == setup.file
        assert (setup.ours.recv(100) == b"the end") == is_known
        setup.repeats.watch(setup.file, select.EPOLLIN)


def test_a_client_that_hangs_up_is_handed_over(setup):
    setup.client.send(call_of(7))
    setup.client.close()
    file, events, _ = setup.repeats.next()
    assert file == setup.file
    assert events & select.EPOLLHUP


def test_an_answer_that_the_socket_does_not_take_is_handed_over(setup):
    setup.ours.setblocking(False)
    with suppress(BlockingIOError):
        while setup.ours.send(bytes(1000)):
            pass
    setup.client.send(call_of(7))
    file, events, unsent = setup.repeats.next()
    assert (file, events) == (setup.file, 0)
    assert unsent[8:16] == struct.pack("<Q", 7)


def test_a_call_stays_with_one_thread_until_it_is_answered(setup):
    both, told = select.EPOLLIN | select.EPOLLOUT, []

    def run():
        setup.repeats.watch_for(setup.file, both)  # as an answer of another thread has to wait
        told.append(bool(select.select([setup.calls], [], [], 0)[0]))

    setup.repeats.remember_call(
        setup.file, 6, (call_of(0, b"slow"), ANSWER), run, setup.metrics, NAMES
    )
    setup.client.send(call_of(7, b"slow"))
    assert setup.repeats.next() == (setup.file, select.EPOLLOUT, b"")
    assert told == [False]
    assert setup.client.recv(100)[8:16] == struct.pack("<Q", 7)
    for end in (setup.client, setup.ours):
        end.setblocking(False)
        with pytest.raises(BlockingIOError):
            end.recv(100)


def test_a_call_that_was_handed_over_is_one_threads_until_it_has_it_watched(setup):
    setup.client.send(b"another")
    assert setup.repeats.next()[0] == setup.file
    setup.repeats.watch_for(setup.file, select.EPOLLIN)
    assert not select.select([setup.calls], [], [], 0)[0]
    setup.repeats.watch(setup.file, select.EPOLLIN)
    assert setup.repeats.next() == (setup.file, select.EPOLLIN, b"")


def test_results_follow_the_inputs_and_other_clients_are_served(tmp_path):
    with driver(tmp_path) as running, running.client() as client, running.client() as other:
        model, theirs = client.prepare(relu_chain(1, 64)), other.prepare(relu_chain(1, 64))
        shape = model.interface.inputs[0].dimensions

        def repeat(owner, on):
            with owner.segment(1 << 20) as segment:
                x, y = segment.place(shape, "f4"), segment.place(shape, "f4")
                for value in range(200):
                    x.array[...] = value - 100
                    assert on.execute([x], [y])[0] is y.array
                    np.testing.assert_allclose(y.array, np.tanh(x.array), 1e-5)
                return x, y

        beside = threading.Thread(target=repeat, args=(other, theirs))
        beside.start()
        x, y = repeat(client, model)
        beside.join()
        with pytest.raises(DriverError):
            model.execute([x], [y])
        model.close()
        with pytest.raises(DriverError):
            model.execute([x], [y])


def test_reusable_and_burst_runs_are_repeated_and_end(tmp_path):
    with driver(tmp_path) as running, running.client() as client:
        model = client.prepare(relu_chain(1, 64))
        shape = model.interface.inputs[0].dimensions
        x = np.ones(shape, np.float32)
        reusable, burst = model.reusable([x]), model.burst()
        with client.segment(1 << 20) as segment:
            ends = [segment.place(shape, "f4")], [segment.place(shape, "f4")]
            for value in range(50):
                reusable.inputs[0][...] = ends[0][0].array[...] = value
                np.testing.assert_allclose(reusable.execute()[0], np.tanh(value), 1e-5)
                np.testing.assert_allclose(burst.execute(*ends)[0], np.tanh(value), 1e-5)
        for each in (reusable, burst):
            each.close()
        with pytest.raises(DriverError):
            reusable.execute()


def test_a_client_of_many_requests_has_few_of_them_remembered():
    setup = Setup()
    try:
        setup.repeats.close(setup.file)
        call_cache = ServerCallCache(setup.calls.fileno(), setup.permits)
        call_cache.open(setup.file)
        for number in range(3 * KEPT_MAX):
            call = m.RunExecution(number)
            may = CacheCall(1, number + 1, call, None, Executed(ErrorStatus.NONE, ()))
            call_cache.remember(setup.file, may, setup.run, setup.metrics, NAMES)
            call_cache.remember(setup.file, may, setup.run, setup.metrics, NAMES)
            assert len(call_cache._kept[setup.file]) <= KEPT_MAX
        setup.client.send(encode(call, 9))
        setup.client.send(b"the end")
        assert call_cache.next()[0] == setup.file
        assert setup.client.recv(100) == encode(may.reply, 9)
        call_cache.forget(setup.file, 0)
        assert not call_cache._kept
    finally:
        setup.close()
