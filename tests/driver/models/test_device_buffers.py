"""Buffers of the driver: one room each, in which models write and read."""

import numpy as np
import pytest

import tightship
from tests.driver.native_driver import driver
from tests.scenarios.driver.test_feature_levels import client_of
from tests.small_models import relu_chain
from tightship._core import StopFlag
from tightship.driver.client import session
from tightship.driver.memory.file_prober import FileProber
from tightship.driver.memory.mappings import Mappings
from tightship.driver.models.device_buffers import DeviceBuffers
from tightship.driver.models.loaded import loaded
from tightship.driver.models.running import OFTEN, Runs
from tightship.driver.service.effects import Run, RunArgument
from tightship.driver.types.status import ErrorStatus
from tightship.errors import DriverError

STEPS = 100


def test_a_room_stays_where_it_is_while_its_size_does():
    buffers = DeviceBuffers()
    for size_bytes in (1, 100, 1 << 20):
        room = buffers.room(7, size_bytes)
        assert room.size == size_bytes
        assert room.ctypes.data % 64 == 0
        assert buffers.room(7, size_bytes) is room is buffers[7]
    assert buffers.room(8, 100) is not buffers.room(9, 100)
    buffers.drop(7)
    buffers.drop(7)
    with pytest.raises(KeyError):
        buffers[7]


def argument(token, shape, room_bytes=1 << 30):
    return RunArgument(shape, token=token, room_bytes=room_bytes)


def test_a_model_reads_and_writes_buffers_where_they_are():
    with tightship.load(relu_chain(2, 256)) as model:
        (_, shape) = model.input_types["v0"]
        seen = []
        plain = model.bind

        def bind(inputs, outputs):
            seen.append((inputs["v0"].ctypes.data, outputs["v2"].ctypes.data))
            return plain(inputs, outputs)

        model.bind = bind
        buffers = DeviceBuffers()
        runs = Runs({1: loaded(model)}, Mappings(FileProber()), buffers)
        size_bytes = 4 * np.prod(shape)
        rooms = [buffers.room(token, size_bytes) for token in (1, 2)]
        rooms[0].view("f4")[...] = 3
        for into in (2, 1, 2):
            ends = (argument(3 - into, shape),), (argument(into, shape),)
            answer = runs.run(Run(5, 1, *ends, -1, -1), StopFlag())
            assert answer.status is ErrorStatus.NONE
        places = [room.ctypes.data for room in rooms]
        assert seen == [(places[0], places[1]), (places[1], places[0])]
        assert len(set(rooms[1].view("f4"))) == 1
        assert 0.5 < rooms[1].view("f4")[0] < 1
        ends = (argument(1, shape),), (argument(2, shape, size_bytes - 1),)
        answer = runs.run(Run(5, 1, *ends, -1, -1), StopFlag())
        assert answer.status is ErrorStatus.OUTPUT_INSUFFICIENT_SIZE


def test_a_buffer_that_is_given_back_or_moves_is_looked_for_anew():
    with tightship.load(relu_chain(1, 256)) as model:
        (_, shape) = model.input_types["v0"]
        buffers, size_bytes = DeviceBuffers(), 4 * np.prod(shape)
        runs = Runs({1: loaded(model)}, Mappings(FileProber()), buffers)
        ends = (argument(1, shape),), (argument(2, shape),)
        for value in (0.5, 0.25):
            for token in (1, 2):
                runs.forget_buffer(token)
                buffers.drop(token)
                buffers.room(token, size_bytes).view("f4")[...] = value
            assert runs.run(Run(5, 1, *ends, -1, -1), StopFlag()).status is ErrorStatus.NONE
            np.testing.assert_allclose(buffers[2].view("f4"), np.tanh(value), 1e-4)
            buffers.room(1, 4)
            buffers.room(1, size_bytes).view("f4")[...] = -value
            assert runs.run(Run(5, 1, *ends, -1, -1), StopFlag()).status is ErrorStatus.NONE
            np.testing.assert_allclose(buffers[2].view("f4"), np.tanh(-value), 1e-4)
            assert len(runs._repeats) == 1


def test_a_repeated_run_is_reported_while_its_buffers_stay():
    with tightship.load(relu_chain(1, 256)) as model:
        (_, shape) = model.input_types["v0"]
        buffers, size_bytes = DeviceBuffers(), 4 * np.prod(shape)
        runs = Runs({1: loaded(model)}, Mappings(FileProber()), buffers)
        for token in (1, 2):
            buffers.room(token, size_bytes)
        asked = Run(5, 1, (argument(1, shape),), (argument(2, shape),), -1, -1)
        for _ in range(OFTEN):
            assert runs.often(asked) is None
            runs.run(asked, StopFlag())
        assert runs.often(asked) is not None
        buffers.room(2, 4)
        buffers.room(2, size_bytes)
        assert runs.often(asked) is None


def test_a_state_goes_from_run_to_run_and_not_through_the_socket(tmp_path, monkeypatch):
    sent = []
    plain = session.send

    def send(socket, data, files=()):
        sent.append((len(data), len(files)))
        plain(socket, data, files)

    monkeypatch.setattr(session, "send", send)
    with driver(tmp_path) as running, running.client() as client:
        model = client.prepare(relu_chain(2, 256))
        shape = model.interface.inputs[0].dimensions
        states = [client.allocate(inputs=[(model, 0)], outputs=[(model, 0)]) for _ in range(2)]
        value = np.random.default_rng(0).standard_normal(shape, np.float32)
        states[0].copy_from(value)
        ends = [([states[i].of()], [states[1 - i].of()]) for i in range(2)]
        for step in range(4):  # after which there is a ring
            model.execute(*ends[step % 2])
        mapped, sent[:] = running.mappings(), []
        for step in range(4, STEPS):
            model.execute(*ends[step % 2])
        assert max(sent, default=(0, 0)) < (256, 1)
        assert len(sent) <= STEPS - 4  # others went by the ring
        assert running.mappings() == mapped
        result = np.empty(shape, np.float32)
        states[STEPS % 2].copy_to(result)
        for _ in range(STEPS):
            value = 1 / (1 + np.exp(-np.tanh(value)))
        np.testing.assert_allclose(result, value, 1e-4)


def test_a_state_that_goes_to_and_fro_is_run_without_the_service_until_something_changes(
    tmp_path, monkeypatch
):
    asked, plain = [], Runs.run
    monkeypatch.setattr(Runs, "run", lambda *each: asked.append(None) or plain(*each))
    with client_of(tmp_path) as client, client.prepare(relu_chain(1, 256)) as model:
        shape = model.interface.inputs[0].dimensions
        states = [client.allocate(inputs=[(model, 0)], outputs=[(model, 0)]) for _ in range(2)]
        value = np.full(shape, 0.5, np.float32)
        states[0].copy_from(value)
        result = np.empty(shape, np.float32)
        for rounds in range(1, 4):
            for step in range(STEPS):
                model.execute([states[step % 2].of()], [states[1 - step % 2].of()])
                value = np.tanh(value)
            states[0].copy_to(result)
            np.testing.assert_allclose(result, value, 1e-4)
            assert len(asked) < rounds * STEPS // 2
        states[1].close()
        with pytest.raises(DriverError, match="is not allocated"):
            model.execute([states[0].of()], [states[1].of()])
