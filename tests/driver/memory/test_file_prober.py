"""A client's file that never answers delays only its client, and only for a while."""

import os
import threading
from contextlib import contextmanager

import numpy as np
import pytest

from tests.driver.test_run_permits import until
from tests.small_models import relu_chain
from tightship._core import RunPermits
from tightship.driver.client.client import Client
from tightship.driver.memory import descriptor, file_prober, inspection, mappings
from tightship.driver.memory.file_prober import ASKING_MAX, FileProber, is_prompt
from tightship.driver.oip.repository import Repository
from tightship.driver.protocol import messages as m
from tightship.driver.protocol.channel import send
from tightship.driver.protocol.codec import encode
from tightship.driver.protocol.replies import PoolRegistered
from tightship.driver.server.server import Server
from tightship.driver.types.pools import Pool, PoolMode
from tightship.driver.types.request import Extent
from tightship.driver.types.status import ErrorStatus
from tightship.errors import DriverError

MODEL = relu_chain(1, 1024)
X = np.ones((1, 1024), np.float32)
SHORTLY_S = 0.05
"""Time limit for a client that is given up, in seconds."""


class Dead:
    """A file system whose files do not answer until the gate opens."""

    def __init__(self):
        self.gate = threading.Event()
        self.asked = threading.Semaphore(0)
        self.files = set()

    def instead(self, call):
        """A call about a file that waits for a dead one, but in the thread of a test."""

        def waiting(file, *arguments):
            is_own = threading.current_thread() is threading.main_thread()
            if not is_own and os.readlink(f"/proc/self/fd/{file}") in self.files:
                self.asked.release()
                assert self.gate.wait(60)
            return call(file, *arguments)

        return waiting


@pytest.fixture
def dead(monkeypatch):
    found = Dead()
    monkeypatch.setattr(descriptor, "_described", found.instead(descriptor._described))
    monkeypatch.setattr(mappings.os, "preadv", found.instead(os.preadv))
    monkeypatch.setattr(file_prober.os, "close", found.instead(os.close))
    yield found
    found.gate.set()


@pytest.fixture
def server(tmp_path):
    """A driver of this process that waits for files as long as a test may take."""
    made = Server(tmp_path / "driver.sock", Repository(dict), RunPermits(1))
    made._slow.patience_s = 60
    thread = threading.Thread(target=made.serve)
    thread.start()
    yield made
    made.stop()
    thread.join()


@pytest.fixture
def other(server, tmp_path):
    """A client of the driver that must not notice."""
    assert not server._slow.asking_count
    with Client(tmp_path / "driver.sock") as client:
        model = client.prepare(MODEL)
        yield lambda: model.execute([X])


@contextmanager
def file_of(path):
    file = os.open(path, os.O_RDWR | os.O_CREAT)
    os.ftruncate(file, 1 << 14)
    yield file
    os.close(file)


def own_files():
    return len(os.listdir("/proc/self/fd"))


def register(client, file):
    call = m.RegisterPool("mmap_fd", 1 << 14, 3, 0, 0, 1)
    return client._session.expect(PoolRegistered, call, (file,))


def test_a_file_that_cannot_be_described_costs_its_client_an_error(dead, server, other, tmp_path):
    with Client(tmp_path / "driver.sock") as client, file_of(tmp_path / "file") as file:
        client.capabilities()
        other()
        before = own_files()
        dead.files.add(str(tmp_path / "file"))
        server._slow.patience_s = SHORTLY_S
        while not dead.asked.acquire(blocking=False):  # or it was given up before it began
            with pytest.raises(DriverError, match="does not answer") as caught:
                register(client, file)
            assert caught.value.status == ErrorStatus.GENERAL_FAILURE
        assert server._slow.asking_count >= 1
        other()
        client.capabilities()
        dead.gate.set()
        until(lambda: own_files() <= before)
        until(lambda: server._slow.asking_count == 0)


def test_calls_of_a_client_wait_for_the_file_of_the_one_before(dead, other, tmp_path):
    with Client(tmp_path / "driver.sock") as client, file_of(tmp_path / "file") as file:
        dead.files.add(str(tmp_path / "file"))
        replies = []
        calling = threading.Thread(target=lambda: replies.append(register(client, file)))
        calling.start()
        assert dead.asked.acquire(timeout=60)
        other()
        assert not replies
        dead.gate.set()
        calling.join()
        assert replies[0].pool


def test_a_client_that_is_gone_meanwhile_leaves_nothing(dead, server, other, tmp_path):
    other()
    before, pools = own_files(), len(server._service.ledger.pools)
    with file_of(tmp_path / "file") as file:
        dead.files.add(str(tmp_path / "file"))
        client = Client(tmp_path / "driver.sock")
        call = encode(m.RegisterPool("mmap_fd", 1 << 14, 3, 0, 0, 1), 1, 1)
        send(client._session._socket, call, (file,))
        assert dead.asked.acquire(timeout=60)
        client.close()
        other()
        dead.gate.set()
    until(lambda: own_files() <= before)
    until(lambda: len(server._service.ledger.pools) == pools)


def test_a_file_that_cannot_be_closed_delays_no_client(dead, other, tmp_path):
    with Client(tmp_path / "driver.sock") as client, file_of(tmp_path / "file") as file:
        pool = register(client, file).pool
        dead.files.add(str(tmp_path / "file"))
        client._session.exchange(m.UnregisterPool(pool))
        assert dead.asked.acquire(timeout=60)
        other()
        client.capabilities()


def test_bytes_that_cannot_be_read_fail_a_run(dead, server, other, tmp_path):
    with Client(tmp_path / "driver.sock") as client, file_of(tmp_path / "file") as file:
        model = client.prepare(MODEL)
        with client.file_pool(file) as pool:
            x = pool.at(0, (1, 1024), "f4")
            assert len(model.execute([x])) == 1
            mappings.os.preadv, before = not_in_memory(mappings.os.preadv), mappings.os.preadv
            dead.files.add(str(tmp_path / "file"))
            server._slow.patience_s = SHORTLY_S
            with pytest.raises(DriverError) as caught:
                model.execute([x])
            assert caught.value.status == ErrorStatus.GENERAL_FAILURE
            other()
            mappings.os.preadv = before


def not_in_memory(preadv):
    """Act as for a file of which no page is cached."""

    def call(file, rooms, start, flags=0):
        if flags:
            raise BlockingIOError
        return preadv(file, rooms, start)

    return call


def test_of_one_mount_few_are_asked_and_others_are_not_held_up(tmp_path):
    slow, gate, asked = FileProber(60), threading.Event(), threading.Semaphore(0)

    def ask():
        asked.release()
        assert gate.wait(60)

    with file_of(tmp_path / "file") as file, open("/proc/self/status") as elsewhere:
        waiting = [slow.begin(file, ask) for _ in range(ASKING_MAX + 1)]
        for _ in range(ASKING_MAX):
            assert asked.acquire(timeout=60)
        assert slow.asking_count == ASKING_MAX
        assert slow.begin(elsewhere.fileno(), lambda: 5).result(60) == 5
        assert not any(each.done() for each in waiting)
        gate.set()
        for each in waiting:
            each.result(60)
    until(lambda: slow.asking_count == 0)


def test_memory_and_pipes_are_asked_at_once(tmp_path):
    pipe = os.pipe()
    memory = os.memfd_create("memory")
    os.mkfifo(tmp_path / "fifo")
    fifo = os.open(tmp_path / "fifo", os.O_RDWR)
    with file_of(tmp_path / "file"):
        assert [is_prompt(file) for file in (*pipe, memory, fifo)] == [True, True, True, False]
    for file in (*pipe, memory, fifo):
        os.close(file)


def test_while_too_much_waits_no_files_are_taken_and_calls_without_are_answered(
    server, tmp_path, monkeypatch
):
    gate = threading.Event()
    with Client(tmp_path / "driver.sock") as client, file_of(tmp_path / "file") as file:
        client.capabilities()
        asked = [server._slow.begin(file, lambda: gate.wait(60)) for _ in range(ASKING_MAX + 1)]
        monkeypatch.setattr(file_prober, "WAITING_MAX", 1)
        before = own_files()
        with pytest.raises(DriverError, match="files of it are lost"):
            register(client, file)
        client.capabilities()
        assert own_files() <= before
        gate.set()
        for each in asked:
            each.result(60)
        until(lambda: not server._slow.is_full)
        assert register(client, file).pool


def test_a_thread_that_has_asked_asks_the_next_and_goes_after_a_while(tmp_path, monkeypatch):
    monkeypatch.setattr(file_prober, "IDLE_S", 60.0)
    slow = FileProber(60)

    def hasten():
        monkeypatch.setattr(file_prober, "IDLE_S", 0.01)
        return threading.current_thread()

    with file_of(tmp_path / "file") as file:
        first = slow.answer(file, threading.current_thread)
        until(lambda: slow.asking_count == 0)
        second = slow.answer(file, hasten)
        assert first is second is not threading.current_thread()
        until(lambda: not first.is_alive())
        assert slow.answer(file, threading.current_thread) is not first


def test_when_it_is_closed_no_thread_stays(tmp_path, monkeypatch):
    monkeypatch.setattr(file_prober, "IDLE_S", 3600.0)
    slow = FileProber()
    with file_of(tmp_path / "file") as file:
        idle = slow.answer(file, threading.current_thread)
        until(lambda: slow.asking_count == 0)
        slow.close()
        until(lambda: not idle.is_alive())
        late = slow.answer(file, threading.current_thread)
        assert late is not idle
        until(lambda: not late.is_alive())


def test_a_thread_that_is_stuck_is_not_waited_for_by_another_question(tmp_path):
    slow, gate, stuck = FileProber(60), threading.Event(), []

    def ask():
        stuck.append(threading.current_thread())
        assert gate.wait(60)

    with file_of(tmp_path / "file") as file:
        slow.answer(file, threading.current_thread)
        until(lambda: slow.asking_count == 0)
        slow.patience_s = SHORTLY_S
        while not stuck:  # or it was given up before it began
            with pytest.raises(DriverError, match="does not answer"):
                slow.answer(file, ask)
        slow.patience_s = 60
        assert slow.answer(file, threading.current_thread) not in stuck
        gate.set()
    until(lambda: slow.asking_count == 0)
    slow.close()


def test_what_is_written_in_parts_is_read_back(tmp_path, monkeypatch):
    monkeypatch.setattr(mappings, "PART_BYTES", 1000)
    slow, data = FileProber(), np.arange(1 << 12).astype(np.uint8) % 251
    memory = os.memfd_create("memory")
    os.ftruncate(memory, 1 << 14)
    with file_of(tmp_path / "file") as file:
        for each in (file, memory):
            extent = Extent((1, each), 0, 1 << 14)
            pool = Pool(each, "mmap_fd", extent, 3, PoolMode.COPY, each, is_decodable=True)
            mappings.Mappings(slow).write(pool, 5, data)
            assert bytes(mappings.Mappings(slow).read(pool, 5, data.size)) == bytes(data)
    os.close(memory)
    slow.close()


def test_a_file_that_no_thread_can_ask_is_not_waited_for(monkeypatch):
    def refuse(_):
        raise RuntimeError

    monkeypatch.setattr(threading.Thread, "start", refuse)
    monkeypatch.setattr(inspection, "is_prompt", lambda _: False)
    file, told = os.memfd_create("slow"), []
    assert inspection.look((file,), None, FileProber(), told.append) is None
    assert told == []
    with pytest.raises(OSError, match="Bad file"):
        os.fstat(file)
