"""Drivers without one or other optional feature, and a client that does without."""

import re
import struct
import threading
from contextlib import contextmanager

import numpy as np
import pytest

from tests.scenarios.driver.test_buffer_uses import INPUTS, STATE, cell, here, read, states_of
from tightship._core import RunPermits
from tightship.driver import Client, CompilationCache, ModelBuilder, tensor_type
from tightship.driver.client.device_buffer import DeviceBuffer, PooledBuffer
from tightship.driver.oip.repository import Repository
from tightship.driver.protocol.codec import decode_reply
from tightship.driver.protocol.replies import ModelPrepared
from tightship.driver.server.features import FEATURES
from tightship.driver.server.server import Server
from tightship.driver.types.pools import PoolMode
from tightship.driver.types.status import ErrorStatus
from tightship.errors import DriverError

TOKEN = bytes(32)
NUMBER = 77
"""Number of a call that is written by hand."""


@contextmanager
def client_of(folder, **offered):
    """A client of a driver in this process that offers so much."""
    server = Server(folder / "driver.sock", Repository(dict), RunPermits(1), **offered)
    thread = threading.Thread(target=server.serve)
    thread.start()
    try:
        with Client(folder / "driver.sock") as client:
            yield client
    finally:
        server.stop()
        thread.join()


def without(feature):
    return {"features": FEATURES - {feature}, "secret": None}


def status_of(call, *arguments, **named):
    with pytest.raises(DriverError) as caught:
        call(*arguments, **named)
    return caught.value.status


def check_models(client):
    """Check every driver's features: ONNX, models of operands, and executions of each kind."""
    wanted = here(STATE)[0]
    remote = client.prepare(cell())
    with remote.burst() as burst, remote.reusable([INPUTS[0], STATE]) as reusable:
        runs = [remote.execute([INPUTS[0], STATE]), burst.execute([INPUTS[0], STATE])]
        for (result,) in [*runs, reusable.execute()]:
            np.testing.assert_allclose(result, wanted, 1e-5)
    with remote.execute_fenced([INPUTS[0], STATE]) as fenced:
        np.testing.assert_allclose(fenced.wait(30)[0], wanted, 1e-5)
    builder, kind = ModelBuilder(), tensor_type("f4", (2, 4))
    builder.operation(19, [builder.input(kind)], [builder.output(kind)])
    (result,) = client.prepare(builder).execute([INPUTS[0]])
    np.testing.assert_array_equal(result, np.maximum(INPUTS[0], 0))


def check_states(client, kind):
    """The same code, whether buffers are the driver's or segments."""
    remote = client.prepare(cell())
    states = states_of(client, remote)
    assert {type(each) for each in states} == {kind}
    states[0].copy_from(STATE)
    for step, wanted in enumerate(here(STATE, INPUTS[:5])):
        ends = states[step % 2], states[1 - step % 2]
        remote.execute([INPUTS[step], ends[0].of()], [ends[1].of()])
        np.testing.assert_allclose(read(ends[1]), wanted, 1e-5, 1e-6)
    states[0].copy_from(states[1])
    np.testing.assert_array_equal(read(states[0]), read(states[1]))
    for each in states:
        assert status_of(each.copy_from, STATE[0]) == ErrorStatus.INVALID_ARGUMENT
        assert status_of(each.copy_to, STATE[0].copy()) == ErrorStatus.INVALID_ARGUMENT
        each.close()


def test_a_driver_says_what_it_offers(tmp_path):
    with client_of(tmp_path, secret=TOKEN) as client:
        said = client.capabilities()
        assert (said.feature_level, set(said.features)) == (1, FEATURES)
        assert (said.model_cache_files, said.data_cache_files) == (1, 0)
        check_models(client)
        check_states(client, DeviceBuffer)


@pytest.mark.parametrize("feature", sorted(FEATURES))
def test_a_client_works_without_a_feature(tmp_path, feature):
    with client_of(tmp_path, **without(feature)) as client:
        assert set(client.capabilities().features) == FEATURES - {feature}
        check_models(client)
        check_states(client, PooledBuffer if feature == "memory_domains" else DeviceBuffer)


def test_without_memory_domains_a_buffer_must_know_its_size_and_use(tmp_path):
    with client_of(tmp_path, **without("memory_domains")) as client:
        remote = client.prepare(cell())
        assert status_of(client.allocate) == ErrorStatus.INVALID_ARGUMENT
        roles = {"inputs": [(remote, 0), (remote, 1)]}
        assert status_of(client.allocate, **roles) == ErrorStatus.INVALID_ARGUMENT


def test_without_isolated_workers_a_file_is_copied(tmp_path):
    data = np.arange(8, dtype=np.float32)
    (tmp_path / "data").write_bytes(data.tobytes())
    builder, kind = ModelBuilder(), tensor_type("f4", (8,))
    builder.operation(19, [builder.input(kind)], [builder.output(kind)])
    with client_of(tmp_path, **without("isolated")) as client:
        remote = client.prepare(builder)
        with (tmp_path / "data").open("rb") as file:
            refused = status_of(client.file_pool, file.fileno(), PoolMode.ISOLATED)
            assert refused in (ErrorStatus.GENERAL_FAILURE, ErrorStatus.INVALID_ARGUMENT)
            with client.file_pool(file.fileno()) as pool:
                (result,) = remote.execute([pool.at(0, (8,), "f4")])
    np.testing.assert_array_equal(result, data)


def test_without_a_cache_a_model_is_prepared_anew(tmp_path):
    with (
        client_of(tmp_path, secret=None) as client,
        (tmp_path / "cache").open("w+b") as file,
    ):
        cache = CompilationCache(TOKEN, (file.fileno(),))
        assert client.capabilities().model_cache_files == 0
        client.prepare(cell(), cache=cache).close()
        assert status_of(client.prepare_from_cache, cache) == ErrorStatus.GENERAL_FAILURE


def earlier_prepare(pool, size_bytes):
    """An ONNX model in a pool, as clients say it that know of no names; written by hand."""
    source = struct.pack("<BiqqqI", 1, 1, pool, 0, size_bytes, 0)
    body = source + struct.pack("<iiq", 1, 1, -1) + bytes(4) + bytes(4) + bytes(32)
    return struct.pack("<BBHIQ", 1, 4, 0, len(body), NUMBER) + body


def test_a_client_that_knows_of_no_names_of_files_prepares_a_model(tmp_path):
    data = cell()
    with client_of(tmp_path) as client, client.segment(len(data)) as segment:
        segment.place((len(data),), "u1").array[...] = np.frombuffer(data, np.uint8)
        client._session._socket.send(earlier_prepare(segment.pool, len(data)))
        frame = decode_reply(client._session._socket.recv(1 << 16))
    assert frame.number == NUMBER
    assert isinstance(frame.message, ModelPrepared)
    assert len(frame.message.inputs) == 2


def test_a_driver_without_names_of_files_is_sent_none(tmp_path):
    path = tmp_path / "no model.onnx"
    path.write_bytes(b"no model")
    with client_of(tmp_path, **without("named_files")) as client:
        with pytest.raises(DriverError, match="is not") as caught:
            client.prepare(path)
        assert str(path) not in str(caught.value)
        path.write_bytes(cell())
        client.prepare(path).close()
    with client_of(tmp_path) as client:
        path.write_bytes(b"no model")
        with pytest.raises(DriverError, match=re.escape(f"`{path}` is not")):
            client.prepare(path)
