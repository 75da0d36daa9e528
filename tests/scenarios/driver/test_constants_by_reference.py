"""Weights in files beside a model: mapped where the driver trusts them, else copied."""

import os
from pathlib import Path

import numpy as np
import onnx
import pytest

import tightship
from tests.driver.native_driver import driver
from tests.driver.nnapi.test_native_operands import sum_with
from tests.small_models import dense, dense_result
from tests.test_safetensors import encoded
from tightship.driver.protocol import messages as m
from tightship.driver.types.model import ExternalFile, FileFormat, ModelFile
from tightship.driver.types.pools import PoolMode
from tightship.driver.types.status import ErrorStatus
from tightship.errors import DriverError, FormatError, InputError

MODEL, WEIGHTS = dense(batch=4)
X = np.random.default_rng(1).standard_normal((4, 32), np.float32)
Y = dense_result(X, WEIGHTS)
CLOSE = {"rtol": 1e-4, "atol": 1e-4}


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    """A folder that the driver trusts."""
    folder = tmp_path_factory.mktemp("home")
    folder.chmod(0o755)
    return folder


@pytest.fixture(scope="module")
def served(tmp_path_factory, home):
    with driver(tmp_path_factory.mktemp("driver"), "--trust", home) as running:
        yield running


def saved(folder):
    """The model with all of its weights in a file beside it."""
    model = onnx.load_model_from_string(MODEL)
    path = folder / "dense.onnx"
    onnx.save(model, path, save_as_external_data=True, location="dense.bin", size_threshold=0)
    (folder / "dense.bin").chmod(0o644)
    return path


def mapped(served, path):
    return str(path) in Path(f"/proc/{served.process.pid}/maps").read_text()


def modes(client):
    """Return the modes of pools that a model needs after their client has forgotten them."""
    pools = client.inspect().clients[-1].pools
    return {pool.kind: pool.mode for pool in pools if not pool.is_registered}


def test_weights_of_a_client_are_copied_and_may_be_cut_then(client, served, tmp_path):
    path = saved(tmp_path)
    with client.prepare(path) as model:
        assert modes(client)["mmap_fd"] == "copy"
        assert not mapped(served, tmp_path / "dense.bin")
        os.truncate(tmp_path / "dense.bin", 0)
        np.testing.assert_allclose(model.execute([X])[0], Y, **CLOSE)


def test_weights_in_a_folder_of_the_driver_are_mapped_where_they_are(client, served, home):
    with client.prepare(saved(home)) as model:
        assert modes(client)["mmap_fd"] == "sealed"
        assert mapped(served, home / "dense.bin")
        np.testing.assert_allclose(model.execute([X])[0], Y, **CLOSE)


def test_a_prepared_model_in_a_folder_of_the_driver_is_mapped_where_it_is(client, served, home):
    path = home / "dense.tship"
    tightship.prepare(MODEL, path)
    path.chmod(0o644)
    with client.prepare(path) as model:
        assert modes(client) == {"mmap_fd": "sealed"}
        assert mapped(served, path)
        np.testing.assert_allclose(model.execute([X])[0], Y, **CLOSE)


def test_a_prepared_model_elsewhere_is_copied_first(client, tmp_path):
    path = tmp_path / "dense.tship"
    tightship.prepare(MODEL, path)
    with client.prepare(path) as model:
        assert modes(client) == {"ashmem": "sealed"}
        os.truncate(path, 0)
        np.testing.assert_allclose(model.execute([X])[0], Y, **CLOSE)


def test_a_model_that_is_cut_short_of_weights_is_refused(client, tmp_path):
    path = saved(tmp_path)
    os.truncate(tmp_path / "dense.bin", 9)
    with pytest.raises(DriverError, match=r"dense\.bin"):
        client.prepare(path)


def test_a_model_that_names_a_file_elsewhere_is_not_sent(client, tmp_path):
    path = saved(tmp_path)
    path.write_bytes(path.read_bytes().replace(b"dense.bin", b"../se.bin"))
    with pytest.raises(FormatError, match=r"without `\.\.`"):
        client.prepare(path)


def test_a_file_that_no_pool_stands_for_is_named(client, tmp_path):
    data = saved(tmp_path).read_bytes()
    with pytest.raises(DriverError, match=r"dense\.bin") as caught:
        client.prepare(data)
    assert caught.value.status == ErrorStatus.GENERAL_FAILURE


@pytest.mark.parametrize("mode", [PoolMode.COPY, PoolMode.ISOLATED])
def test_weights_that_vanish_before_they_are_read_kill_no_process(client, tmp_path, mode):
    data = saved(tmp_path).read_bytes()
    segment = client.segment(len(data))
    segment.place((len(data),), "u1").array[...] = np.frombuffer(data, np.uint8)
    with (tmp_path / "dense.bin").open("r+b") as file:
        weights = client.file_pool(file.fileno(), mode)
        file.truncate(0)
        externals = (ExternalFile("dense.bin", weights.pool),)
        source = ModelFile(FileFormat.ONNX, segment.pool, 0, len(data), externals)
        with pytest.raises(DriverError) as caught:
            client._session.exchange(m.Prepare(source))
    assert caught.value.status == ErrorStatus.GENERAL_FAILURE
    assert client.capabilities()


def test_tensors_of_a_safetensors_file_are_constants_where_they_are(client, served, home):
    path = home / "weights.safetensors"
    values = np.arange(64, dtype=np.float32)
    path.write_bytes(encoded({"other": 2 * values, "bias": values}).replace(b"F32", b"U32", 1))
    path.chmod(0o644)
    with client.tensor_file(path) as file:
        offset, type_of_bias = file.place("bias")
        assert type_of_bias.dimensions == (64,)
        model = client.prepare(sum_with(lambda b, kind: b.constant_in(file, offset, kind)))
        assert mapped(served, path)
        for name in ("none", "other"):
            with pytest.raises(InputError, match=name):
                file.place(name)
    (result,) = model.execute([np.zeros(64, np.float32)])
    np.testing.assert_array_equal(result, values)


def test_and_copied_where_the_driver_does_not_trust_it(client, served, tmp_path):
    path = tmp_path / "weights.safetensors"
    values = np.arange(64, dtype=np.float32)
    path.write_bytes(encoded({"bias": values}))
    with client.tensor_file(path) as file:
        offset, _ = file.place("bias")
        model = client.prepare(sum_with(lambda b, kind: b.constant_in(file, offset, kind)))
    assert not mapped(served, path)
    np.testing.assert_array_equal(model.execute([values])[0], 2 * values)


def test_a_file_elsewhere_is_not_mapped_however_it_is_asked_for(client, tmp_path):
    path = tmp_path / "elsewhere"
    path.write_bytes(bytes(4096))
    with path.open("rb") as file, pytest.raises(DriverError) as caught:
        client.file_pool(file.fileno(), PoolMode.SEALED)
    assert caught.value.status == ErrorStatus.INVALID_ARGUMENT
