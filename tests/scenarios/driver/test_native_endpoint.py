"""A client and a driver in two processes: what is computed, what is left behind, who dies."""

import gc
import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import tightship
from tests.driver.native_driver import PATIENCE_S, driver
from tests.small_models import dense, dense_result, relu_chain
from tightship.driver.client.fence import Fence
from tightship.driver.client.model_source import shown
from tightship.driver.client.segment import Placed
from tightship.driver.memory.descriptor import new_segment
from tightship.driver.protocol import messages as m
from tightship.driver.protocol.forms import NAME_BYTES_MAX
from tightship.driver.protocol.replies import PoolRegistered
from tightship.driver.server.listening import listen
from tightship.driver.types.attachment import FenceState
from tightship.driver.types.model import DataLocation, FileFormat, ModelFile, NamedFile
from tightship.driver.types.pools import Image, PoolMode
from tightship.driver.types.status import ErrorStatus
from tightship.errors import DriverError, FormatError, InputError

MODEL, WEIGHTS = dense(batch=4)
X = np.random.default_rng(1).standard_normal((4, 32), np.float32)
Y = dense_result(X, WEIGHTS)
CLOSE = {"rtol": 1e-4, "atol": 1e-4}


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    folder = tmp_path_factory.mktemp("driver")
    (folder / "dense.onnx").write_bytes(MODEL)
    with driver(folder, folder / "dense.onnx") as running:
        yield running


@pytest.fixture
def model(client):
    return client.prepare(MODEL)


def status_of(call, *arguments, **named):
    with pytest.raises(DriverError) as caught:
        call(*arguments, **named)
    return caught.value.status


def test_a_model_from_bytes_computes_what_it_should(model):
    np.testing.assert_allclose(model.execute([X])[0], Y, **CLOSE)


@pytest.mark.parametrize("name", ["empty.onnx", "empty.tship", None])
def test_a_model_that_is_empty_is_said_to_be(client, tmp_path, name):
    if name is not None:
        (tmp_path / name).touch()
    with pytest.raises(FormatError, match=f"{name or '<bytes>'}` is not a model: it is empty"):
        client.prepare(b"" if name is None else tmp_path / name)


def test_a_model_of_the_driver_is_known_by_its_name(client):
    np.testing.assert_allclose(client.prepare_named("dense").execute([X])[0], Y, **CLOSE)
    assert status_of(client.prepare_named, "other") == ErrorStatus.INVALID_ARGUMENT


def test_a_prepared_model_runs_where_its_file_is(client, tmp_path):
    tightship.prepare(MODEL, tmp_path / "dense.tship")
    np.testing.assert_allclose(client.prepare(tmp_path / "dense.tship").execute([X])[0], Y, **CLOSE)


def test_what_is_no_model_is_refused_with_a_reason(client):
    with pytest.raises(DriverError, match="ONNX"):
        client.prepare(b"no model")


def test_a_file_that_is_no_model_is_called_by_its_path(client, tmp_path):
    path = tmp_path / "not\x1b[2Ja\nmodel.onnx"
    path.write_bytes(b"no model")
    with pytest.raises(DriverError, match=re.escape(f"`{tmp_path}/not?[2Ja?model.onnx` is not")):
        client.prepare(path)


def test_the_driver_prints_a_clients_name_on_one_line(client):
    with client.segment(64) as segment:
        source = NamedFile(FileFormat.ONNX, segment.pool, 0, 64, name="a\x1b[2J\nb")
        with pytest.raises(DriverError, match=re.escape("`a?[2J?b` is not")):
            client._session.exchange(m.Prepare(source))


@pytest.mark.parametrize("name", ["a", "é", "\udc80"])
def test_the_end_of_a_long_path_is_shown(name):
    path = Path("/".join([name * 60] * 9), "model.onnx")
    found = shown(path)
    assert len(found.encode()) <= NAME_BYTES_MAX < len(str(path))
    assert found.startswith("...")
    assert str(path).replace("\udc80", "?").endswith(found[3:])
    assert len(found) > 120
    assert shown(Path("model.onnx")) == "model.onnx"


def test_values_are_read_and_written_where_they_are_placed(client, model):
    with client.segment(1 << 16) as segment:
        x, y = segment.place((4, 32), "f4"), segment.place((4, 8), "f4")
        x.array[...] = X
        assert model.execute([x], [y])[0] is y.array
        np.testing.assert_allclose(y.array, Y, **CLOSE)


def test_a_result_stays_as_it_was_when_the_next_comes(model):
    first = model.execute([X])[0]
    model.execute([0 * X])
    np.testing.assert_allclose(first, Y, **CLOSE)


def test_fenced_bursts_and_reusable_executions_give_the_same(model):
    with model.execute_fenced([X]) as fenced:
        np.testing.assert_allclose(fenced.wait(PATIENCE_S)[0], Y, **CLOSE)
        assert fenced.info().status is ErrorStatus.NONE
        with model.execute_fenced([X], wait_for=[fenced.fence]) as after:
            np.testing.assert_allclose(after.wait(PATIENCE_S)[0], Y, **CLOSE)
    with model.burst() as burst:
        for factor in (1, 0, 1):
            expected = dense_result(factor * X, WEIGHTS)
            np.testing.assert_allclose(burst.execute([factor * X])[0], expected, **CLOSE)
    with model.reusable([X]) as reusable:
        np.testing.assert_allclose(reusable.execute()[0], Y, **CLOSE)
        reusable.inputs[0][...] = 0
        np.testing.assert_allclose(reusable.execute()[0], dense_result(0 * X, WEIGHTS), **CLOSE)


def test_a_buffer_carries_a_value_from_one_model_to_itself(client, model):
    x = client.allocate(inputs=[(model, 0)])
    y = client.allocate(outputs=[(model, 0)])
    assert status_of(model.execute, [x.of()]) == ErrorStatus.GENERAL_FAILURE
    x.copy_from(X)
    assert model.execute([x.of()], [y.of()]) == (None,)
    result = np.empty((4, 8), np.float32)
    y.copy_to(result)
    np.testing.assert_allclose(result, Y, **CLOSE)


def test_an_array_that_does_not_fit_is_refused_on_this_side(model):
    with pytest.raises(InputError, match="float64"):
        model.execute([X.astype(float)])
    with pytest.raises(InputError, match="has 1"):
        model.execute([X, X])


@pytest.mark.parametrize("mode", [PoolMode.COPY, PoolMode.ISOLATED, PoolMode.SEALED])
def test_values_are_read_from_and_written_to_images(client, model, mode):
    files = [new_segment(4096) for _ in range(2)]
    os.pwrite(files[1], b"\xff" * 4096, 0)
    with (
        client.image_pool(files[0], Image(32, 2, 2, 144), mode, is_writable=True) as x,
        client.image_pool(files[1], Image(8, 2, 2, 48), mode, is_writable=True) as y,
    ):
        x.pixels[...] = X.view(np.uint8).reshape(x.pixels.shape)
        assert model.execute([x.of()], [y.of()]) == (None,)
        result = np.ascontiguousarray(y.pixels).view("f4").reshape(4, 8)
        np.testing.assert_allclose(result, Y, **CLOSE)
        between = np.frombuffer(os.pread(files[1], 192, 0), np.uint8).reshape(4, 48)[:, 32:]
        assert (between == 255).all()
        assert status_of(model.execute, [y.of()]) == ErrorStatus.INVALID_ARGUMENT
    for file in files:
        os.close(file)


def test_a_blob_is_memory_like_any_other(client, model):
    size = X.nbytes + 64 * Y.itemsize
    file = new_segment(size)
    blob = m.RegisterPool("hardware_buffer_blob", size, 3, 0, image=Image(size, 1, 1, size))
    pool = client._session.expect(PoolRegistered, blob, (file,)).pool
    os.pwrite(file, X.tobytes(), 0)
    x = Placed(X, pool, DataLocation(0, 0, X.nbytes))
    y = Placed(np.empty_like(Y), pool, DataLocation(0, X.nbytes, Y.nbytes))
    model.execute([x], [y])
    found = np.frombuffer(os.pread(file, Y.nbytes, X.nbytes), np.float32).reshape(Y.shape)
    np.testing.assert_allclose(found, Y, **CLOSE)
    os.close(file)


def test_an_image_is_no_model_and_no_constant(client):
    file = new_segment(4096)
    with client.image_pool(file, Image(32, 32, 1, 128)) as image:
        source = ModelFile(FileFormat.ONNX, image.pool, 0, 64)
        refused = status_of(client._session.exchange, m.Prepare(source))
        assert refused == ErrorStatus.INVALID_ARGUMENT
    os.close(file)


def test_a_deadline_ends_a_run_and_the_next_one_is_served(client):
    chain = client.prepare(relu_chain(64))
    x = np.ones(chain.interface.inputs[0].dimensions, np.float32)
    assert status_of(chain.execute, [x], timeout_s=0.0) in {
        ErrorStatus.MISSED_DEADLINE_PERSISTENT,
        ErrorStatus.MISSED_DEADLINE_TRANSIENT,
    }
    assert chain.execute([x])[0].size


def test_a_run_that_is_late_is_stopped_between_its_steps(client):
    chain = client.prepare(relu_chain(400))
    x = np.ones(chain.interface.inputs[0].dimensions, np.float32)
    late = ErrorStatus.MISSED_DEADLINE_PERSISTENT
    while late == ErrorStatus.MISSED_DEADLINE_PERSISTENT:  # until one comes in time
        late = status_of(chain.execute, [x], timeout_s=0.02)
    assert late == ErrorStatus.MISSED_DEADLINE_TRANSIENT


def test_a_file_that_is_not_sealed_is_copied_and_may_be_cut(client, model, tmp_path):
    with (tmp_path / "pool").open("w+b") as file:
        file.write(X.tobytes() + bytes(128))
        file.flush()
        number = file.fileno()
        unsealed = status_of(client.file_pool, number, PoolMode.SEALED)
        assert unsealed == ErrorStatus.INVALID_ARGUMENT
        with client.file_pool(number, is_writable=True) as pool:
            x, y = pool.at(0, (4, 32), "f4"), pool.at(512, (4, 8), "f4")
            model.execute([x], [y])
            np.testing.assert_allclose(y.array, Y, **CLOSE)
            os.ftruncate(number, 100)
            assert status_of(model.execute, [x]) == ErrorStatus.GENERAL_FAILURE
        np.testing.assert_allclose(model.execute([X])[0], Y, **CLOSE)


def test_a_file_open_to_read_gives_inputs_and_takes_no_outputs(client, model, tmp_path):
    (tmp_path / "pool").write_bytes(X.tobytes())
    with (tmp_path / "pool").open("rb") as file, client.file_pool(file.fileno()) as pool:
        x, y = pool.at(0, (4, 32), "f4"), pool.at(0, (4, 8), "f4")
        np.testing.assert_allclose(model.execute([x])[0], Y, **CLOSE)
        assert status_of(model.execute, [X], [y]) == ErrorStatus.GENERAL_FAILURE


def test_memory_that_comes_and_goes_leaves_nothing(served, client):
    client.segment(4096).close()
    unsealed = os.memfd_create("unsealed")
    os.ftruncate(unsealed, 4096)
    before = served.settled_state(client)
    for _ in range(1000):
        client.segment(4096).close()
    for _ in range(100):
        refused = status_of(client.file_pool, unsealed, PoolMode.SEALED)
        assert refused == ErrorStatus.INVALID_ARGUMENT
    os.close(unsealed)
    assert served.settles_at(before, client)


CHILD = """
import sys
import numpy as np
from tightship.driver.client.client import Client
client = Client(sys.argv[1])
client.capabilities()
step = sys.argv[2]
if step != "connected":
    model = client.prepare(open(sys.argv[3], "rb").read())
    x = np.ones((4, 32), np.float32)
    model.execute([x])
    buffer = client.allocate(inputs=[(model, 0)])
    buffer.copy_from(x)
if step == "fenced":
    first = model.execute_fenced([x])
    more = [model.execute_fenced([x], wait_for=[first.fence]) for _ in range(8)]
    burst = model.burst()
    burst.execute([x])
print("there", flush=True)
sys.stdin.read()
"""


@pytest.mark.parametrize("step", ["connected", "prepared", "fenced"])
def test_a_client_that_is_killed_leaves_nothing(served, client, step, tmp_path):
    (tmp_path / "model.onnx").write_bytes(MODEL)
    before = served.settled_state(client)
    child = subprocess.Popen(
        [sys.executable, "-c", CHILD, served.path, step, tmp_path / "model.onnx"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    with child:
        assert child.stdout.readline() == b"there\n"
        assert len(client.inspect().clients) >= 2
        child.kill()
    assert served.settles_at(before, client)


def test_when_the_driver_dies_fences_fail_and_calls_say_so(tmp_path):
    with driver(tmp_path) as running, running.client() as client:
        model = client.prepare(MODEL)
        gc.collect()
        before = len(os.listdir("/proc/self/fd"))
        read_end, write_end = os.pipe()
        with Fence(read_end) as never:
            fenced = model.execute_fenced([X], wait_for=[never])
        assert fenced.fence.state is FenceState.PENDING
        running.process.kill()
        assert status_of(fenced.wait, PATIENCE_S) == ErrorStatus.GENERAL_FAILURE
        assert status_of(client.capabilities) == ErrorStatus.DEVICE_UNAVAILABLE
        fenced.close()
        os.close(write_end)
        del fenced  # the last to need its arrays, but for frames of what was raised
        gc.collect()
        assert len(os.listdir("/proc/self/fd")) <= before


def test_a_fence_that_breaks_ends_what_waits_for_it(model):
    read_end, write_end = os.pipe()
    with Fence(read_end) as broken, model.execute_fenced([X], wait_for=[broken]) as fenced:
        os.close(write_end)
        assert status_of(fenced.wait, PATIENCE_S) == ErrorStatus.GENERAL_FAILURE


def test_a_driver_that_is_ended_removes_its_socket(tmp_path):
    with driver(tmp_path) as running, running.client() as client:
        client.prepare(MODEL).execute([X])
        running.process.terminate()
        assert running.process.wait(PATIENCE_S) == 0
        assert not running.path.exists()


def test_the_socket_of_a_dead_driver_is_taken_over_and_that_of_a_live_one_is_not(tmp_path):
    with driver(tmp_path) as first:
        first.process.kill()
        first.process.wait()
        with driver(tmp_path) as second, second.client() as client:
            assert client.capabilities().feature_level == 1
            with pytest.raises(InputError, match="A driver listens"):
                listen(second.path)
