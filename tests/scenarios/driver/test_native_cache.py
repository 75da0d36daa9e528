"""Table 2.6: the compilation cache, in a driver of another process."""

import hashlib
import os
import threading
from contextlib import contextmanager

import numpy as np
import pytest

import tightship
from tests.driver.native_driver import driver
from tests.driver.nnapi.test_control import COUNT, VALUE, repeated
from tests.driver.nnapi.test_open_operands import ROWS, sum_of_rows
from tests.driver.nnapi.test_varying import FIXED, doubled
from tests.small_models import dense, dense_result
from tightship.driver import CompilationCache, ModelBuilder, tensor_type
from tightship.driver.nnapi.operation_type import OperationType
from tightship.driver.service.cache import HEAD_BYTES
from tightship.driver.types.status import ErrorStatus
from tightship.errors import DriverError

GF, IA = ErrorStatus.GENERAL_FAILURE, ErrorStatus.INVALID_ARGUMENT
TOKEN = hashlib.sha256(b"sum").digest()
OTHER = hashlib.sha256(b"other").digest()
KINDS = {"float32": tensor_type("f4", (8,)), "quant8_asymm": tensor_type("u1", (8,), 0.5, 3)}
RACES = 30


@pytest.fixture(params=KINDS.values(), ids=KINDS.keys())
def kind(request):
    return request.param


@contextmanager
def opened(path, mode=os.O_RDWR):
    file = os.open(path, mode | os.O_CREAT, 0o600)
    try:
        yield file
    finally:
        os.close(file)


@pytest.fixture
def file(tmp_path):
    with opened(tmp_path / "cache") as descriptor:
        yield descriptor


def sum_of(kind, constant=4):
    """x + a constant."""
    builder = ModelBuilder()
    values = np.full(8, constant, np.float32 if kind.scale == 0 else np.uint8)
    names = [builder.input(kind), builder.constant(values, kind), builder.constant(0)]
    builder.operation(OperationType.ADD, names, [builder.output(kind)])
    return builder


def check(model, kind, constant=4):
    x = np.arange(8).astype(np.float32 if kind.scale == 0 else np.uint8)
    assert model.interface.inputs == (kind,) == model.interface.outputs
    (result,) = model.execute([x])
    np.testing.assert_array_equal(result, x + constant - kind.zero_point)


def content(file):
    return os.pread(file, os.fstat(file).st_size, 0)


def overwrite(file, data):
    os.ftruncate(file, 0)
    os.pwrite(file, data, 0)


def refusal(client, cache):
    with pytest.raises(DriverError) as caught:
        client.prepare_from_cache(cache)
    return caught.value.status


def test_cache_saving_and_retrieval(client, kind, file):
    cache = CompilationCache(TOKEN, (file,))
    check(client.prepare(sum_of(kind), cache=cache), kind)
    with client.prepare_from_cache(cache) as model:
        check(model, kind)
    overwrite(file, b"")  # a model does not need its cache any more
    assert refusal(client, cache) == GF


def test_cache_saving_and_retrieval_non_zero_offset(client, kind, file):
    os.write(file, b"01" * 100_000)
    os.lseek(file, 1, os.SEEK_SET)
    cache = CompilationCache(TOKEN, (file,))
    check(client.prepare(sum_of(kind), cache=cache), kind)
    os.lseek(file, 1, os.SEEK_SET)
    check(client.prepare_from_cache(cache), kind)


def test_an_onnx_model_and_a_prepared_one_are_kept_likewise(client, file, tmp_path):
    model, weights = dense(batch=4)
    x = np.random.default_rng(1).standard_normal((4, 32), np.float32)
    cache = CompilationCache(TOKEN, (file,))
    tightship.prepare(model, tmp_path / "dense.tship")
    for source in (model, tmp_path / "dense.tship"):
        overwrite(file, b"")
        client.prepare(source, cache=cache).close()
        (result,) = client.prepare_from_cache(cache).execute([x])
        np.testing.assert_allclose(result, dense_result(x, weights), 1e-4, 1e-4)


COUNTS = {"model +1": (2, 0), "model -1": (0, 0), "data +1": (1, 1)}


@pytest.mark.parametrize(("models", "datas"), COUNTS.values(), ids=COUNTS.keys())
def test_invalid_num_cache(client, kind, tmp_path, models, datas):
    """SaveToCacheInvalidNumCache, PrepareModelFromCacheInvalidNumCache."""
    with opened(tmp_path / "0") as one, opened(tmp_path / "1") as other:
        files = (one, other)
        cache = CompilationCache(TOKEN, files[:models], files[models : models + datas])
        check(client.prepare(sum_of(kind), cache=cache), kind)
        assert refusal(client, cache) == IA
        assert os.fstat(one).st_size == 0


@pytest.mark.parametrize("mode", [os.O_RDONLY, os.O_WRONLY], ids=["read-only", "write-only"])
def test_invalid_access_mode(client, kind, tmp_path, mode):
    """SaveToCacheInvalidAccessMode, PrepareModelFromCacheInvalidAccessMode."""
    with opened(tmp_path / "cache", mode) as file:
        cache = CompilationCache(TOKEN, (file,))
        check(client.prepare(sum_of(kind), cache=cache), kind)
        assert refusal(client, cache) == IA
        assert os.fstat(file).st_size == 0


def test_corrupted_model_cache(client, kind, file):
    cache = CompilationCache(TOKEN, (file,))
    client.prepare(sum_of(kind), cache=cache)
    data = content(file)
    rng = np.random.default_rng(0)
    for position in [*range(0, 8 * HEAD_BYTES, 61), *rng.integers(0, 8 * len(data), 40)]:
        changed = bytearray(data)
        changed[position // 8] ^= 1 << int(position) % 8
        overwrite(file, changed)
        assert refusal(client, cache) == GF
    overwrite(file, data)
    check(client.prepare_from_cache(cache), kind)


def test_wrong_length_model_cache(client, kind, file):
    cache = CompilationCache(TOKEN, (file,))
    client.prepare(sum_of(kind), cache=cache)
    data = content(file)
    for wrong in (data + b"\0", data[:-1], data[: HEAD_BYTES + 1], data[:HEAD_BYTES], data[:7]):
        overwrite(file, wrong)
        assert refusal(client, cache) == GF
    os.ftruncate(file, 1 << 40)  # holes, which are not read to check their contents
    assert refusal(client, cache) == GF


def test_wrong_token(client, kind, file):
    client.prepare(sum_of(kind), cache=CompilationCache(TOKEN, (file,)))
    for bit in range(0, 256, 37):
        token = bytearray(TOKEN)
        token[bit // 8] ^= 1 << bit % 8
        assert refusal(client, CompilationCache(bytes(token), (file,))) == GF


def test_replace_security_sensitive_cache(client, kind, tmp_path):
    """Another model's file is not this one's, nor with this one's head."""
    with opened(tmp_path / "0") as mine, opened(tmp_path / "1") as others:
        client.prepare(sum_of(kind), cache=CompilationCache(TOKEN, (mine,)))
        client.prepare(sum_of(kind, 5), cache=CompilationCache(OTHER, (others,)))
        assert refusal(client, CompilationCache(TOKEN, (others,))) == GF
        data = content(mine)[:HEAD_BYTES] + content(others)[HEAD_BYTES:]
        overwrite(mine, data)
        assert refusal(client, CompilationCache(TOKEN, (mine,))) == GF


@contextmanager
def meanwhile(work):
    """`work` is done again and again by another thread."""
    stop = threading.Event()

    def loop():
        while not stop.is_set():
            work()

    thread = threading.Thread(target=loop)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()


def prepared_or_none(client, cache):
    try:
        return client.prepare_from_cache(cache)
    except DriverError as error:
        if error.status != GF:
            raise
        return None


def test_save_to_cache_toctou(client, kind, tmp_path):
    """The file is overwritten while it is saved: what is read later is right, or nothing is."""
    with opened(tmp_path / "0") as file, opened(tmp_path / "1") as others:
        client.prepare(sum_of(kind, 5), cache=CompilationCache(OTHER, (others,)))
        data = content(others)
        cache = CompilationCache(TOKEN, (file,))
        for _ in range(RACES):
            with meanwhile(lambda: os.pwrite(file, data, 0)):
                check(client.prepare(sum_of(kind), cache=cache), kind)
            model = prepared_or_none(client, cache)
            if model is not None:
                check(model, kind)


def test_prepare_from_cache_toctou(client, kind, tmp_path):
    """The file is changed while it is read: the model is one that was written, or none."""
    with opened(tmp_path / "0") as file:
        cache = CompilationCache(TOKEN, (file,))
        client.prepare(sum_of(kind), cache=cache)
        data = content(file)
        middle = len(data) // 2

        def disturb():
            os.pwrite(file, b"\xff" * 100, middle)
            os.ftruncate(file, middle)
            overwrite(file, data)

        with meanwhile(disturb):
            for _ in range(RACES):
                model = prepared_or_none(client, cache)
                if model is not None:
                    check(model, kind)
        overwrite(file, data)
        check(client.prepare_from_cache(cache), kind)


def test_a_driver_reads_what_the_one_before_has_written(kind, file, tmp_path):
    cache = CompilationCache(TOKEN, (file,))
    for permit in range(2):
        with driver(tmp_path) as running, running.client() as client:
            assert client.capabilities().model_cache_files == 1
            if permit == 0:
                client.prepare(sum_of(kind), cache=cache)
            check(client.prepare_from_cache(cache), kind)
    (tmp_path / "tightship/driver/secret").unlink()
    with driver(tmp_path) as running, running.client() as client:
        assert refusal(client, cache) == GF


UNKEPT = {
    "loop": (repeated, (VALUE, COUNT)),
    "loop of changing dimensions": (doubled, (FIXED, COUNT)),
    "open dimensions": (sum_of_rows, (ROWS, ROWS)),
}


@pytest.mark.parametrize(("make", "kinds"), UNKEPT.values(), ids=UNKEPT.keys())
def test_a_model_that_cannot_be_kept_is_prepared_all_the_same(client, file, make, kinds):
    """The model has several programs, which no file holds, or none before a request comes."""
    os.write(file, b"of before")
    cache = CompilationCache(TOKEN, (file,))
    with client.prepare(make(), cache=cache) as model:
        assert model.interface.inputs == kinds
    assert os.fstat(file).st_size == 0
    assert refusal(client, cache) == GF
