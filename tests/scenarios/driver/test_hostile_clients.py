"""Clients that send what they should not: the driver serves on and keeps nothing of theirs."""

import errno
import fcntl
import os
import random
import resource
import socket
from contextlib import ExitStack, suppress

import numpy as np
import pytest

from tests.driver.memory.test_descriptor import folder_of_the_dead
from tests.driver.native_driver import driver
from tests.small_models import dense, dense_result
from tightship.driver.memory import mappings
from tightship.driver.memory.file_prober import FileProber
from tightship.driver.models import operand_models, running
from tightship.driver.models import registry as models_of_driver
from tightship.driver.models.device_buffers import DeviceBuffers
from tightship.driver.protocol import messages as m
from tightship.driver.protocol.channel import send
from tightship.driver.protocol.codec import encode
from tightship.driver.service.effects import FindSupported, PrepareModel, Run
from tightship.driver.types.model import ModelFile
from tightship.driver.types.pools import Pool, PoolMode
from tightship.driver.types.request import Extent, Request
from tightship.driver.types.status import ErrorStatus
from tightship.engine.arenas.arena_group import ArenaGroup
from tightship.errors import DriverError

MODEL, WEIGHTS = dense(batch=4)
X = np.ones((4, 32), np.float32)
Y = dense_result(X, WEIGHTS)
GOOD = [
    m.RegisterPool("ashmem", 4096, 3, 0),
    m.RegisterPool("mmap_fd", 4096, 1, 0, 0, 1, must_map=True),
    m.Capabilities(),
    m.CopyTo(1, 2),
    m.OpenBurst(5),
    m.OpenRing(0),
    m.ExecuteFenced(1, Request((), (), ()), (0,)),
]


@pytest.fixture
def witness(served):
    """A client that behaves, and must not notice."""
    with served.client() as client:
        model = client.prepare(MODEL)
        model.execute([X])
        yield client
        model.execute([X])


def connected(path):
    other = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    other.connect(str(path))
    return other


def odd_files(stack):
    """Descriptors of all kinds, most of which are no memory."""
    files = [
        os.open(os.devnull, os.O_RDONLY),
        os.open("/", os.O_RDONLY),
        os.open("/proc/self/maps", os.O_RDONLY),
        os.open(__file__, os.O_PATH),
        os.eventfd(0),
        socket.socket().detach(),
        *os.pipe(),
        os.memfd_create("unsealed"),
        folder_of_the_dead(),
    ]
    for file in files:
        stack.callback(os.close, file)
    return files


def mangled(rng):
    data = bytearray(encode(rng.choice(GOOD), 7, 1))
    match rng.randrange(4):
        case 0:
            data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
        case 1:
            del data[rng.randrange(1, len(data)) :]
        case 2:
            data = bytearray(rng.randbytes(rng.randrange(1, 200)))
    return bytes(data)


@pytest.mark.parametrize(
    ("connections", "messages"),
    [(60, 20), pytest.param(2000, 500, marks=pytest.mark.slow)],
    ids=["few", "a million"],
)
def test_mangled_messages_with_any_files_leave_nothing(served, witness, connections, messages):
    rng = random.Random(connections)
    before = served.settled_state(witness)
    with ExitStack() as stack:
        files = odd_files(stack)
        for _ in range(connections):
            with connected(served.path) as hostile, suppress(ConnectionError):
                for _ in range(messages):
                    send(hostile, mangled(rng), rng.choices(files, k=rng.choice([0, 1, 1, 2])))
        assert served.settles_at(before, witness)


@pytest.mark.parametrize(
    "times", [50, pytest.param(1000, marks=pytest.mark.slow)], ids=["few", "many"]
)
def test_a_file_that_is_cut_after_it_was_registered_kills_no_process(times, tmp_path):
    with driver(tmp_path) as alone, alone.client() as witness:
        before = alone.settled_state(witness)
        with alone.client() as hostile, (tmp_path / "pool").open("w+b") as file:
            model = hostile.prepare(MODEL)
            for _ in range(times):
                os.ftruncate(file.fileno(), 4096)
                with hostile.file_pool(file.fileno(), is_writable=True) as pool:
                    x = pool.at(0, (4, 32), "f4")
                    os.ftruncate(file.fileno(), 0)
                    with pytest.raises(DriverError, match="has become shorter"):
                        model.execute([x])
        assert alone.settles_at(before, witness)


def run_isolated(client, model, file, *, is_cut):
    """Run on a file that the isolated worker has mapped; maybe once more when it has no bytes."""
    os.ftruncate(file.fileno(), 4096)
    with client.file_pool(file.fileno(), PoolMode.ISOLATED, is_writable=True) as pool:
        x, y = pool.at(0, (4, 32), "f4"), pool.at(2048, (4, 8), "f4")
        x.array[...] = X
        model.execute([x], [y])
        np.testing.assert_allclose(y.array, Y, rtol=1e-4, atol=1e-4)
        if is_cut:
            os.ftruncate(file.fileno(), 0)
            with pytest.raises(DriverError, match="has become shorter") as caught:
                model.execute([x], [y])
            assert caught.value.status == ErrorStatus.GENERAL_FAILURE


@pytest.mark.parametrize(
    "times", [8, pytest.param(1000, marks=pytest.mark.slow)], ids=["few", "many"]
)
def test_a_file_that_is_cut_while_it_is_mapped_kills_a_worker_only(
    served, witness, times, tmp_path
):
    with served.client() as hostile, (tmp_path / "pool").open("w+b") as file:
        model = hostile.prepare(MODEL)
        for is_cut in (True, False):  # the one that is cut brings a ring, too
            run_isolated(hostile, model, file, is_cut=is_cut)
        before = served.settled_state(witness)
        for _ in range(times):
            run_isolated(hostile, model, file, is_cut=True)
        run_isolated(hostile, model, file, is_cut=False)
        assert served.settles_at(before, witness)


def test_a_file_of_holes_is_not_copied_as_a_model(witness, tmp_path):
    with (tmp_path / "holes").open("w+b") as file:
        os.ftruncate(file.fileno(), 3 << 30)
        with witness.file_pool(file.fileno()) as pool, pytest.raises(DriverError, match="external"):
            witness._prepare(m.Prepare(ModelFile(1, pool.pool, 0, 3 << 30)))


def flood(connection):
    for number in range(100_000):
        send(connection, encode(m.Capabilities(), number))


def test_a_client_that_reads_no_answers_is_shut_out(served, witness):
    before = served.settled_state(witness)
    with connected(served.path) as hostile, pytest.raises(ConnectionError):
        flood(hostile)
    assert served.settles_at(before, witness)


def test_without_descriptors_calls_fail_and_the_driver_lives(tmp_path):
    with driver(tmp_path) as running, running.client() as client:
        model = client.prepare(MODEL)
        model.execute([X])
        limit = running.open_files() + 2
        resource.prlimit(running.process.pid, resource.RLIMIT_NOFILE, (limit, limit))
        with pytest.raises(DriverError):
            [client.segment(4096) for _ in range(limit)]
        for _ in range(8):
            connected(running.path).close()
        model.execute([X])


class NoNames:
    """A driver that was started without a model."""

    def __init__(self):
        self.arenas = ArenaGroup()


def a_pool(file):
    extent = Extent((1, file), 0, len(MODEL))
    return Pool(3, "ashmem", extent, 1, PoolMode.COPY, file, is_decodable=True)


def test_a_mistake_of_ours_ends_a_call_and_not_the_driver(monkeypatch, caplog):
    file = os.memfd_create("model", os.MFD_ALLOW_SEALING)
    os.write(file, MODEL)
    fcntl.fcntl(file, fcntl.F_ADD_SEALS, fcntl.F_SEAL_SHRINK)
    memory = mappings.Mappings(FileProber())
    models = models_of_driver.Models(memory, NoNames(), None)
    asked = PrepareModel(5, ModelFile(1, 3, 0, len(MODEL)), (a_pool(file),), 1, -1, None)
    assert models.prepare(asked, running.StopFlag()).status is ErrorStatus.NONE
    run = Run(9, 5, (None,), (None,), -1, -1)
    runs = running.Runs(models, memory, DeviceBuffers())
    assert runs.run(run, running.StopFlag()).status is ErrorStatus.GENERAL_FAILURE
    models.drop(5)
    monkeypatch.setattr(models_of_driver, "opened", lambda *_: 1 / 0)
    assert models.prepare(asked, running.StopFlag()).status is ErrorStatus.GENERAL_FAILURE
    assert len(caplog.records) == 2
    os.close(file)


def test_a_mistake_of_ours_in_looking_at_a_model_ends_a_call(monkeypatch, caplog):
    monkeypatch.setattr(operand_models, "supported_operations", lambda *_: 1 / 0)
    found = operand_models.find_supported(
        FindSupported(5, None, ()), mappings.Mappings(FileProber())
    )
    assert found.status is ErrorStatus.GENERAL_FAILURE
    assert len(caplog.records) == 1


@pytest.mark.parametrize("error", [MemoryError, OSError, ImportError])
def test_what_is_short_is_said_to_be_and_is_no_mistake_of_ours(monkeypatch, caplog, error):
    def refuse(*_):
        raise error(errno.EMFILE, "no files")  # a new one, which keeps no frames for others

    memory = mappings.Mappings(FileProber())
    models = models_of_driver.Models(memory, NoNames(), None)
    monkeypatch.setattr(models_of_driver, "opened", refuse)
    asked = PrepareModel(5, ModelFile(1, 3, 0, len(MODEL)), (a_pool(0),), 1, -1, None)
    short = ErrorStatus.RESOURCE_EXHAUSTED_TRANSIENT
    assert models.prepare(asked, running.StopFlag()).status is short
    monkeypatch.setattr(operand_models, "supported_operations", refuse)
    assert operand_models.find_supported(FindSupported(5, None, ()), memory).status is short
    assert caplog.records == []
