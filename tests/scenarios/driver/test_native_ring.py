"""Calls through rings: a driver in a process of its own, and clients of every kind."""

import gc
import mmap
import os
import random
import signal
import socket
import subprocess
import sys
import threading
from contextlib import contextmanager, suppress

import numpy as np
import pytest

from tests.driver.native_driver import driver
from tests.scenarios.driver.test_feature_levels import client_of, without
from tests.small_models import relu_chain
from tightship.driver.client import session as session_of_client
from tightship.driver.memory.descriptor import new_segment
from tightship.driver.protocol import messages as m
from tightship.driver.types.status import ErrorStatus
from tightship.errors import DriverError

MODEL = relu_chain(1, 64)
CALLS_MAX = 50_000
"""Within which a driver attends, unless others want its processors all the time."""
SLOTS = 4
ATTENDED, CALLED, ASLEEP = 1, 2, 3
needs_processors = pytest.mark.skipif(
    len(os.sched_getaffinity(0)) == 1, reason="with one processor no ring is attended to"
)


@pytest.fixture
def sent(monkeypatch):
    """Sizes of what clients send by their sockets."""
    sizes = []
    send = session_of_client.send

    def count(connection, data, files=()):
        sizes.append(len(data))
        send(connection, data, files)

    monkeypatch.setattr(session_of_client, "send", count)
    return sizes


def was_not_polled(what):
    """Fail; or skip where so much else runs that a driver is not to look at rings."""
    if os.getloadavg()[0] > 2 * len(os.sched_getaffinity(0)):
        pytest.skip(f"{what}, on a machine that is busy otherwise")
    pytest.fail(what)


@contextmanager
def bursting(client):
    """A burst, and arguments of it that stay where they are."""
    model = client.prepare(MODEL)
    shape = model.interface.inputs[0].dimensions
    with client.segment(1 << 16) as segment, model.burst() as burst:
        yield burst, segment.place(shape, "f4"), segment.place(shape, "f4")


def check(burst, x, y, value):
    x.array[...], y.array[...] = value, -1
    assert burst.execute([x], [y])[0] is y.array
    assert abs(y.array - np.tanh(value)).max() < 1e-5


@needs_processors
def test_results_are_those_of_the_socket_all_around_the_ring(served, sent):
    with served.client() as client, bursting(client) as (burst, x, y):
        through_ring = 0
        for number in range(CALLS_MAX):
            before = len(sent)
            check(burst, x, y, number % 7 / 7)
            through_ring += len(sent) == before
            if through_ring == 3 * SLOTS:
                return
    was_not_polled(f"Only {through_ring} calls went through the ring")


def test_two_bursts_and_the_socket_take_permits(served):
    with served.client() as client, bursting(client) as one, bursting(client) as other:
        model = client.prepare(MODEL)
        for number in range(300):
            check(*one, number % 5 / 5)
            check(*one, number % 3 / 5)
            check(*other, number % 4 / 5)
            model.execute([one[1]], [one[2]])


def test_a_pool_in_a_slot_is_used_after_it_was_forgotten(served):
    with served.client() as client:
        model = client.prepare(MODEL)
        shape = model.interface.inputs[0].dimensions
        segment, burst = client.segment(1 << 16), model.burst()
        x, y = segment.place(shape, "f4"), segment.place(shape, "f4")
        for value in range(20):
            check(burst, x, y, value)
        segment.close()
        for value in range(20):
            check(burst, x, y, value)
        model.close()
        check(burst, x, y, 3)
        burst.close()
        with pytest.raises(DriverError):
            burst.execute([x], [y])


def test_a_driver_or_a_client_without_rings_goes_by_the_socket(served, tmp_path, sent):
    with client_of(tmp_path, **without("call_ring")) as client, bursting(client) as ends:
        for value in range(2):  # the second asks what the driver offers
            check(*ends, value)
        for value in range(50):
            before = len(sent)
            check(*ends, value)
            assert len(sent) == before + 1
    with served.client() as client:
        client._session._features = ()
        with bursting(client) as ends:
            for value in range(50):
                check(*ends, value)
        assert client._session._ring is None


def test_a_thousand_bursts_leave_nothing(tmp_path):
    with driver(tmp_path) as served, served.client() as client, served.client() as witness:
        model = client.prepare(MODEL)
        model.burst().close()
        before, ours = served.settled_state(witness), own_state()
        for _ in range(1000):
            model.burst().close()
        assert served.settles_at(before, witness)
        assert all(now <= then for now, then in zip(own_state(), ours, strict=True))


def test_connections_with_rings_leave_nothing(tmp_path):
    with driver(tmp_path) as served, served.client() as witness:
        gc.collect()
        before, ours = served.settled_state(witness), own_state()
        for _ in range(20):
            with served.client() as client, bursting(client) as ends:
                for value in range(3):
                    check(*ends, value)
                assert client._session._ring is not None
        del client, ends
        gc.collect()
        assert served.settles_at(before, witness)
        assert own_state() == ours


@needs_processors
@pytest.mark.parametrize("way", ["execute", "reusable", "burst"])
def test_every_way_to_run_again_goes_through_the_ring(served, sent, way):
    with served.client() as client, client.segment(1 << 16) as segment:
        model = client.prepare(MODEL)
        shape = model.interface.inputs[0].dimensions
        x, y = segment.place(shape, "f4"), segment.place(shape, "f4")
        x.array[...] = 0.5
        reusable, burst = model.reusable([x], [y]), model.burst()
        runs = {
            "execute": lambda: model.execute([x], [y]),
            "reusable": reusable.execute,
            "burst": lambda: burst.execute([x], [y]),
        }
        for _ in range(CALLS_MAX):
            before = len(sent)
            y.array[...] = -1
            runs[way]()
            assert abs(y.array - np.tanh(0.5)).max() < 1e-5
            if len(sent) == before:
                return
    was_not_polled("No call went through the ring")


def own_state():
    with open("/proc/self/maps") as maps:
        return len(os.listdir("/proc/self/fd")), sum("memfd:" in line for line in maps)


class Scribbler:
    """A client that calls by its socket, and writes what it likes to its ring."""

    def __init__(self, client, monkeypatch, seed):
        self.rng, self.taken = random.Random(seed), 0
        files = []
        monkeypatch.setattr(session_of_client, "new_segment", lambda size: kept(files, size))
        self.model = client.prepare(MODEL)
        shape = self.model.interface.inputs[0].dimensions
        segment = client.segment(1 << 16)
        self.burst = self.model.burst()
        self.ends = [segment.place(shape, "f4")], [segment.place(shape, "f4")]
        for _ in range(20):
            self.burst.execute(*self.ends)
        self.memory = mmap.mmap(files[0], m.RING_BYTES)
        os.close(files[0])
        monkeypatch.undo()
        self.message = self.burst._call_cache.find(*self.ends).call.message(bytes(8))
        self.socket = client._session._socket

    def scribble(self):
        """Write to the ring while it is attended to, if it is, and have that looked at."""
        rng, data = self.rng, bytearray(self.message)
        size = len(data)
        match rng.randrange(4):
            case 0:
                self.write(rng.randrange(4, m.RING_BYTES - 64), rng.randbytes(64))
            case 1:
                size = rng.choice((0, 15, 1020, 1021, 1 << 20, 2**32 - 1))
            case 2:
                data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
        for slot in range(SLOTS):
            self.write(64 + 2048 * slot, size.to_bytes(4, "little") + data)
        is_attended = self.memory[0] == ATTENDED
        self.write(0, rng.choice((CALLED, CALLED, ASLEEP, 0, 4, 2**32 - 1)).to_bytes(4, "little"))
        for _ in range(100):
            if not is_attended or self.memory[0] != CALLED:
                break
        self.taken += is_attended and self.memory[0] in (0, ATTENDED)

    def work(self, times):
        """Scribble so often; and on while little of it was looked at, as the machine is busy."""
        for number in range(20 * times):
            self.scribble()
            if self.memory[0] != ATTENDED:
                self.call()
            if number >= times and self.taken > times / 1000:
                break

    def write(self, start, data):
        self.memory[start : start + len(data)] = data

    def call(self):
        """Call by the socket, so that the driver may poll the ring; drop further answers."""
        self.socket.send(self.message)
        self.socket.recv(1 << 16)
        with suppress(BlockingIOError):
            while True:
                self.socket.recv(1 << 16, socket.MSG_DONTWAIT)


def kept(files, size_bytes):
    """A segment with another descriptor, which stays open."""
    files.append(os.dup(file := new_segment(size_bytes)))
    return file


@needs_processors
@pytest.mark.parametrize(
    "times", [10_000, pytest.param(100_000, marks=pytest.mark.slow)], ids=["some", "many"]
)
def test_a_client_that_scribbles_over_its_ring_disturbs_no_other(served, monkeypatch, times):
    is_over, failures = threading.Event(), []

    def work(model, x, y):
        value = 0
        while not is_over.is_set():
            value = (value + 1) % 5
            try:
                check(model, x, y, value)
            except (AssertionError, DriverError) as error:
                failures.append(error)
                return

    with served.client() as hostile, served.client() as other, bursting(other) as ends:
        model = other.prepare(MODEL)
        scribbler = Scribbler(hostile, monkeypatch, times)
        beside = threading.Thread(target=work, args=(model, *ends[1:]))
        beside.start()
        try:
            scribbler.work(times)
        finally:
            is_over.set()
            beside.join()
        assert not failures
        assert served.process.poll() is None
        check(*ends, 3)
        if scribbler.taken <= times / 1000:
            was_not_polled(f"Only {scribbler.taken} calls were taken from the ring")


DYING = """
import sys
from tests.scenarios.driver.test_native_ring import bursting
from tightship.driver import Client
with Client(sys.argv[1]) as client, bursting(client) as (burst, x, y):
    for number in range(10**9):
        burst.execute([x], [y])
        if number == 1000:
            print("begun", flush=True)
"""


@pytest.mark.parametrize("times", [2, pytest.param(50, marks=pytest.mark.slow)])
def test_a_client_that_is_killed_leaves_nothing(tmp_path, times):
    with driver(tmp_path) as served, served.client() as witness:
        with bursting(witness) as ends:
            check(*ends, 1)
        before = served.settled_state(witness)
        for _ in range(times):
            command = [sys.executable, "-c", DYING, served.path]
            with subprocess.Popen(command, stdout=subprocess.PIPE) as dying:
                assert dying.stdout.readline() == b"begun\n"
                dying.send_signal(signal.SIGKILL)
        assert served.settles_at(before, witness)


def for_ever(burst, x, y):
    while True:
        burst.execute([x], [y])


@pytest.mark.parametrize("killing", [signal.SIGKILL, signal.SIGTERM])
def test_a_client_wakes_when_its_driver_is_ended(tmp_path, killing):
    with driver(tmp_path) as running, running.client() as client, bursting(client) as ends:
        burst, x, y = ends
        for _ in range(200):
            burst.execute([x], [y])
        ending = threading.Timer(0.05, running.process.send_signal, [killing])
        ending.start()
        with pytest.raises(DriverError) as caught:
            for_ever(burst, x, y)
        assert caught.value.status == ErrorStatus.DEVICE_UNAVAILABLE
        ending.join()
        running.process.wait(30)
