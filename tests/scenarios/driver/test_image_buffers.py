"""An ONNX model's image in a buffer: channels last there, first for a client that copies it."""

import errno
from functools import partial
from types import SimpleNamespace

import numpy as np
import pytest
from onnx import TensorProto, helper

import tightship
from tests.driver.native_driver import driver
from tests.processor import HAS_AVX512
from tests.small_models import model
from tightship._core import RunPermits, StopFlag
from tightship.driver.memory.file_prober import FileProber
from tightship.driver.memory.mappings import Mappings
from tightship.driver.models import registry as models_of_driver
from tightship.driver.models.device_buffers import DeviceBuffers
from tightship.driver.models.image_model import ImageModel, Images, arranged
from tightship.driver.models.loaded import Loaded, loaded, with_images
from tightship.driver.models.loader import Loader
from tightship.driver.models.registry import Models
from tightship.driver.models.running import OFTEN, Runs
from tightship.driver.oip.repository import Repository
from tightship.driver.server.effect_runner import EffectRunner
from tightship.driver.service.effects import AllocateBuffer, Run, RunArgument
from tightship.driver.service.events import BufferAllocated
from tightship.driver.types.operand_type import OperandType, ValueType
from tightship.driver.types.status import ErrorStatus
from tightship.engine.arenas.arena_group import ArenaGroup
from tightship.frontend.onnx import open_bytes
from tightship.loading import load_graph

FLOAT = TensorProto.FLOAT
SHAPE = (1, 32, 10, 12)
KIND = ValueType(OperandType.TENSOR_FLOAT32, SHAPE)
RANDOM = np.random.default_rng(4)
STATE, *INPUTS = [RANDOM.standard_normal(SHAPE, np.float32) for _ in range(7)]
WEIGHTS = {
    name: RANDOM.standard_normal((32, 32, 3, 3)).astype(np.float32) / 17 for name in ("w", "u")
}


def cell():
    """tanh(conv(input) + conv(state))."""
    nodes = [
        helper.make_node("Conv", ["x", "w"], ["xw"], pads=[1] * 4),
        helper.make_node("Conv", ["h", "u"], ["hu"], pads=[1] * 4),
        helper.make_node("Add", ["xw", "hu"], ["sum"]),
        helper.make_node("Tanh", ["sum"], ["next"]),
    ]
    ends = [("x", FLOAT, SHAPE), ("h", FLOAT, SHAPE)]
    return model(nodes, ends, [("next", FLOAT, SHAPE)], WEIGHTS)


def states(count):
    """Return the states after each step, in this process."""
    with tightship.load(cell()) as own:
        found = [STATE]
        for x in INPUTS[:count]:
            found.append(own(x, found[-1]))
        return found[1:]


@pytest.fixture
def found():
    """The model as the driver has it once a state of it is in a buffer; skipped where in vain."""
    graph = partial(open_bytes(cell()).graph, None)
    with load_graph(graph(), "cell") as plain:
        if not HAS_AVX512:
            pytest.skip("convolutions do not like channels last here")
        base = loaded(plain)
        ready = with_images(
            Loaded(plain, base.inputs, base.outputs, graph), [1], [0], Loader(ArenaGroup()).like
        )
        assert ready is not None
        yield ready
        ready.model.close()


def test_the_second_program_reorders_no_state(found):
    assert isinstance(found.model, ImageModel)
    steps = [[step.name for step in program.plan.steps] for program in found.programs]
    plain, last = (sum(name.endswith("reorder") for name in names) for names in steps)
    assert (plain, last) == (3, 1)  # what is left is that of the input, which is in no buffer


def test_both_programs_have_one_copy_of_the_weights(found):
    first, last = ({id(copy) for copy in each.packed_weights} for each in found.programs)
    assert first == last
    plain, _ = found.programs
    assert found.weights_bytes == plain.memory_stats().weights_bytes


def runs_of(found):
    buffers = DeviceBuffers()
    for token in (1, 2):
        buffers.room(token, STATE.nbytes)
        buffers.have_channels_last(token)
    return Runs({1: found}, Mappings(FileProber()), buffers), buffers


def test_a_state_is_reordered_when_it_is_copied_and_not_in_between(found):
    runs, buffers = runs_of(found)
    buffers.room(3, STATE.nbytes)
    buffers.fill(1, STATE.reshape(-1).view(np.uint8), SHAPE)
    assert buffers.reordered_count == 1
    for step, image in enumerate(INPUTS):
        buffers.room(3, STATE.nbytes).view("f4")[...] = image.reshape(-1)
        ends = [RunArgument(SHAPE, token=token) for token in (3, 1 + step % 2)]
        place = RunArgument(SHAPE, token=2 - step % 2, room_bytes=1 << 20)
        answer = runs.run(Run(5, 1, tuple(ends), (place,), -1, -1), StopFlag())
        assert answer.status is ErrorStatus.NONE
        assert [shape.dimensions for shape in answer.shapes] == [SHAPE]
    assert buffers.reordered_count == 1
    result = buffers.content(1 + len(INPUTS) % 2, SHAPE).view("f4").reshape(SHAPE)
    assert buffers.reordered_count == 2
    np.testing.assert_allclose(result, states(len(INPUTS))[-1], 1e-4, 1e-5)


def test_a_run_that_came_often_is_one_of_the_program_that_reads_images_as_they_lie(found):
    runs, buffers = runs_of(found)
    buffers.room(3, STATE.nbytes).view("f4")[...] = INPUTS[0].reshape(-1)
    buffers.fill(1, STATE.reshape(-1).view(np.uint8), SHAPE)
    ends = tuple(RunArgument(SHAPE, token=token) for token in (3, 1))
    asked = Run(5, 1, ends, (RunArgument(SHAPE, token=2, room_bytes=1 << 20),), -1, -1)
    for _ in range(OFTEN):
        assert runs.run(asked, StopFlag()).status is ErrorStatus.NONE
    buffers.room(2, STATE.nbytes)[...] = 0
    runs.often(asked).run(StopFlag())
    result = buffers.content(2, SHAPE).view("f4").reshape(SHAPE)
    np.testing.assert_allclose(result, states(1)[0], 1e-4, 1e-5)


def test_a_buffer_lies_with_channels_last():
    buffers = DeviceBuffers()
    buffers.have_channels_last(1)
    buffers.fill(1, STATE.reshape(-1).view(np.uint8), SHAPE)
    lies = buffers[1].view("f4").reshape(1, 10, 12, 32)
    np.testing.assert_array_equal(lies, STATE.transpose(0, 2, 3, 1))
    np.testing.assert_array_equal(buffers.content(1, SHAPE).view("f4").reshape(SHAPE), STATE)


def test_what_is_no_buffer_is_read_and_written_as_ever(found):
    """A run with the state in an array, and one whose result goes to an array."""
    _, buffers = runs_of(found)
    buffers.fill(1, STATE.reshape(-1).view(np.uint8), SHAPE)
    view = buffers.seen(1, buffers[1].view("f4"), SHAPE)
    (wanted,) = states(1)
    inputs = {"x": INPUTS[0], "h": STATE}
    plain = found.run(inputs, {}, StopFlag(), -1)["next"]
    np.testing.assert_allclose(plain, wanted, 1e-5)
    mixed = found.run(inputs | {"h": view}, {}, StopFlag(), -1)["next"]
    np.testing.assert_array_equal(mixed, plain)
    place = buffers.seen(2, buffers[2].view("f4"), SHAPE)
    found.run(inputs, {"next": place}, StopFlag(), -1)
    np.testing.assert_array_equal(place, plain)


def test_a_graph_with_images_turned_computes_the_same():
    turned = arranged(open_bytes(cell()).graph(None), Images(frozenset({"h"}), frozenset({"next"})))
    with load_graph(turned, "turned") as last:
        state = STATE.transpose(0, 2, 3, 1)
        (result,) = last.run({"x": INPUTS[0], "h:channels_last": state}).values()
    np.testing.assert_allclose(result.transpose(0, 3, 1, 2), states(1)[0], 1e-4, 1e-5)


def test_in_a_driver_the_layout_is_not_visible(tmp_path):
    with driver(tmp_path) as running, running.client() as client:
        remote = client.prepare(cell())
        both = [client.allocate(inputs=[(remote, 1)], outputs=[(remote, 0)]) for _ in range(2)]
        only = client.allocate(outputs=[(remote, 0)])
        both[0].copy_from(STATE)
        result = np.empty_like(STATE)
        for step, wanted in enumerate(states(3)):
            remote.execute([INPUTS[step], both[step % 2].of()], [both[1 - step % 2].of()])
            both[1 - step % 2].copy_to(result)
            np.testing.assert_allclose(result, wanted, 1e-4, 1e-5)
            (direct,) = remote.execute([INPUTS[step], both[step % 2].of()])
            np.testing.assert_allclose(direct, wanted, 1e-4, 1e-5)
        remote.execute([INPUTS[0], STATE], [only.of()])
        only.copy_to(result)
        np.testing.assert_allclose(result, states(1)[0], 1e-4, 1e-5)


def test_values_of_other_kinds_stay_as_they_are():
    models = Models(Mappings(FileProber()), Repository(dict), None)
    roles = ((1, False, 0), (1, True, 0))
    for kind in (
        ValueType(OperandType.TENSOR_FLOAT16, SHAPE),
        ValueType(OperandType.TENSOR_FLOAT32, (2, 3)),
        ValueType(OperandType.TENSOR_FLOAT32, (0, *SHAPE[1:])),
    ):
        assert not models.take_image(AllocateBuffer(1, kind, roles))
    assert not models.take_image(AllocateBuffer(1, KIND, roles[:1]))


def test_programs_that_were_made_in_vain_are_closed(monkeypatch):
    closed = []
    ready = SimpleNamespace(programs=(SimpleNamespace(close=lambda: closed.append(1)),))
    answers = iter([ready])

    def with_images(*_):
        for found in answers:
            return found
        raise OSError(errno.EMFILE, "Too many open files")

    monkeypatch.setattr(models_of_driver, "with_images", with_images)
    effects = EffectRunner(Repository(dict), None, RunPermits(1), FileProber())
    effects._models._models |= {1: None, 2: None}
    kind = ValueType(OperandType.TENSOR_FLOAT32, (1, 2, 3, 4))
    event = effects._allocate(AllocateBuffer(9, kind, ((1, True, 0), (2, False, 0))))
    assert event == BufferAllocated(9, ErrorStatus.RESOURCE_EXHAUSTED_TRANSIENT)
    assert closed == [1]
    effects.workers.close()
