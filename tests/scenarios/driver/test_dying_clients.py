"""Clients that die at any step, fill memory, or come and go for long: nothing is left of them."""

import os
import resource
import signal
import socket
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from tests.driver.native_driver import driver
from tests.driver.test_run_permits import until
from tests.small_models import dense
from tightship.driver.memory.descriptor import new_segment
from tightship.driver.protocol import messages as m
from tightship.driver.protocol.channel import close_all, receive, send
from tightship.driver.protocol.codec import decode_reply, encode
from tightship.driver.types.model import DataLocation, ModelName
from tightship.driver.types.pools import PoolMode
from tightship.driver.types.request import Request, RequestArgument, RequestPool
from tightship.driver.types.status import ErrorStatus
from tightship.errors import DriverError

MODEL, _ = dense(batch=4)
X = np.ones((4, 32), np.float32)
X_BYTES, Y_BYTES = 4 * 32 * 4, 4 * 8 * 4
REQUEST = ((DataLocation(0, 0, X_BYTES),), (DataLocation(0, X_BYTES, Y_BYTES),))


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    folder = tmp_path_factory.mktemp("driver")
    (folder / "dense.onnx").write_bytes(MODEL)
    with driver(folder, folder / "dense.onnx") as running:
        yield running


@pytest.fixture
def witness(served):
    """A client that behaves, and must not notice."""
    with served.client() as client:
        model = client.prepare_named("dense")
        model.execute([X])
        yield client
        model.execute([X])


class DiedError(Exception):
    """The step came at which the client dies."""


class Mortal:
    """A client that dies at one step: when it has sent a call, or when it was answered."""

    def __init__(self, path, stop=0, *, hears_answer=False):
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.socket.connect(str(path))
        self.stop, self.hears_answer, self.steps = stop, hears_answer, 0

    def ask(self, call, *files):
        self.steps += 1
        send(self.socket, encode(call, self.steps, len(files)), files)
        close_all(files)
        if self.steps == self.stop and not self.hears_answer:
            raise DiedError
        packet = receive(self.socket)
        close_all(packet.files)
        if self.steps == self.stop:
            raise DiedError
        return decode_reply(packet.data).message

    def live(self):
        """Everything that there is to call."""
        model = self.ask(m.Prepare(ModelName("dense"))).model
        pool = self.ask(m.RegisterPool("ashmem", 4096, 3, 0), new_segment(4096)).pool
        whole = self.ask(m.RegisterPool("ashmem", X_BYTES, 3, 0), new_segment(X_BYTES)).pool
        isolated = m.RegisterPool("mmap_fd", X_BYTES, 3, 0, mode=2, must_map=True)
        self.ask(isolated, new_segment(X_BYTES))
        request = self.request(pool)
        self.ask(m.Execute(model, request))
        token = self.ask(m.Allocate((), (model,), (m.Role(0, 0),), ())).token
        self.ask(m.CopyFrom(token, whole))
        self.ask(m.CopyTo(token, whole))
        other = self.ask(m.Allocate((), (model,), (m.Role(0, 0),), ())).token
        self.ask(m.CopyBetween(other, token))
        read_end, write_end = os.pipe()
        self.ask(m.ExecuteFenced(model, request, (0,)), read_end)
        os.close(write_end)
        created = self.ask(m.CreateExecution(model, request)).execution
        self.ask(m.RunExecution(created))
        self.ask(m.RunExecutionFenced(created))
        burst = self.ask(m.OpenBurst(model)).burst
        self.ask(m.BurstExecute(burst, request, (5,)))
        self.ask(m.UnregisterPool(pool))
        self.ask(m.Inspect(0), os.memfd_create("snapshot"))
        self.ask(m.ReleaseModel(model))

    def request(self, pool):
        inputs, outputs = (tuple(map(RequestArgument, row)) for row in REQUEST)
        return Request(inputs, outputs, (RequestPool(pool),))

    def die(self):
        self.socket.close()


def lived(path, stop=0, *, hears_answer=False):
    """A client that is dead now; how many steps it took."""
    client = Mortal(path, stop, hears_answer=hears_answer)
    try:
        client.live()
    except DiedError:
        pass
    finally:
        client.die()
    return client.steps


@pytest.mark.parametrize("hears_answer", [False, True])
def test_a_client_that_dies_at_any_step_leaves_nothing(served, witness, hears_answer):
    steps = lived(served.path)
    assert steps >= 17
    before = settled(served, witness)
    for stop in range(1, steps + 1):
        assert lived(served.path, stop, hears_answer=hears_answer) == stop
        witness.capabilities()
    assert served.settles_at(before, witness)


def settled(served, witness):
    """The state once nothing of the clients before is left."""
    until(lambda: len(witness.inspect().clients) == 1)
    return served.settled_state(witness)


CLIENT = """
import sys
import numpy as np
from tightship.driver import Client
client = Client(sys.argv[1])
model = client.prepare_named("dense")
segment = client.segment(1 << 20)
x = segment.place((4, 32), "f4")
print("ready", flush=True)
while True:
    model.execute([x])
"""


@pytest.mark.parametrize("times", [2, pytest.param(100, marks=pytest.mark.slow)])
def test_a_client_that_is_killed_while_it_runs_leaves_nothing(served, witness, times):
    before = settled(served, witness)
    for _ in range(times):
        with subprocess.Popen(
            [sys.executable, "-c", CLIENT, served.path], stdout=subprocess.PIPE
        ) as client:
            assert client.stdout.readline() == b"ready\n"
            client.send_signal(signal.SIGKILL)
    assert served.settles_at(before, witness)


def test_memory_of_a_dead_client_comes_back_while_another_calls(served, witness):
    before = settled(served, witness)
    client = served.client()
    with client.segment(32 << 20) as segment:
        x = segment.place((4, 32), "f4")
        client.prepare_named("dense").execute([x])
        assert served.mappings() > before[1]
        client.close()
        assert served.settles_at(before, witness)


@pytest.fixture
def little_room(tmp_path):
    """A folder in memory that holds 64 KiB."""
    place = tmp_path / "little"
    place.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", place],
        capture_output=True,
        check=False,
    )
    if mounted.returncode:
        pytest.skip("no file system can be mounted here")
    yield place
    subprocess.run(["umount", "-l", place], check=True)


@pytest.mark.parametrize("mode", [PoolMode.COPY, PoolMode.ISOLATED])
def test_a_file_that_has_no_room_left_fails_the_run_and_nothing_else(
    served, witness, little_room, mode
):
    assert witness.capabilities()
    with served.client() as client, (little_room / "pool").open("w+b") as file:
        model = client.prepare_named("dense")
        os.truncate(file.fileno(), 1 << 20)
        with client.file_pool(file.fileno(), mode, is_writable=True) as pool:
            (little_room / "filler").write_bytes(bytes(48 << 10))
            os.posix_fallocate(file.fileno(), 0, 4096)
            fill(little_room / "rest")
            y = pool.at(512 << 10, (4, 8), "f4")
            with pytest.raises(DriverError, match="pool") as caught:
                model.execute([X], [y])
            assert caught.value.status == ErrorStatus.GENERAL_FAILURE


def fill(path):
    """Take all room that is left."""
    with path.open("wb", buffering=0) as file:
        try:
            while True:
                file.write(bytes(4096))
        except OSError:
            pass


def test_a_driver_that_may_write_to_no_file_answers_all_the_same(tmp_path):

    with driver(tmp_path) as running, running.client() as client:
        model = client.prepare(MODEL)
        resource.prlimit(running.process.pid, resource.RLIMIT_FSIZE, (0, 0))
        with (tmp_path / "pool").open("w+b") as file:
            os.truncate(file.fileno(), 4096)
            for mode in (PoolMode.COPY, PoolMode.ISOLATED):
                with client.file_pool(file.fileno(), mode, is_writable=True) as pool:
                    with pytest.raises(DriverError) as caught:
                        model.execute([X], [pool.at(0, (4, 8), "f4")])
                    assert caught.value.status == ErrorStatus.GENERAL_FAILURE
        assert model.execute([X])[0].shape == (4, 8)


def resident_kib(served):
    status = Path(f"/proc/{served.process.pid}/status").read_text()
    return int(next(line for line in status.splitlines() if line.startswith("VmRSS:")).split()[1])


@pytest.mark.parametrize(
    "times", [300, pytest.param(100_000, marks=pytest.mark.slow)], ids=["few", "many"]
)
def test_pools_and_buffers_that_come_and_go_leave_nothing(served, witness, times):
    model = witness.prepare_named("dense")
    with served.client() as client:
        mine = client.prepare_named("dense")

        def come_and_go(count):
            for index in range(count):
                client.segment(4096).close()
                if index % 10 == 0:
                    client.allocate(inputs=[(mine, 0)]).close()
                    with pytest.raises(DriverError):
                        client.file_pool(client_file, PoolMode.SEALED)

        client_file = os.memfd_create("unsealed")
        os.ftruncate(client_file, 4096)
        come_and_go(300)
        before, resident = served.settled_state(witness), resident_kib(served)
        come_and_go(times)
        assert served.settles_at(before, witness)
        assert resident_kib(served) <= 1.02 * resident
        os.close(client_file)
    model.execute([X])
