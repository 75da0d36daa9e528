"""Table 2.6 for models whose weights lie in files of their own: which a cache never confuses."""

import os
import time
from contextlib import contextmanager

import numpy as np
import pytest

import tightship
from tests.driver.native_driver import driver
from tests.driver.nnapi.test_native_operands import sum_with
from tests.small_models import dense
from tightship.driver import CompilationCache
from tightship.driver.models import cached_sources
from tightship.driver.models.cached_sources import SETTLED_NS, Sources, are_current
from tightship.driver.types.pools import Pool, PoolMode
from tightship.driver.types.request import Extent
from tightship.driver.types.status import ErrorStatus
from tightship.errors import DriverError, InputError

GF = ErrorStatus.GENERAL_FAILURE
X = np.ones((4, 32), np.float32)


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    folder = tmp_path_factory.mktemp("driver")
    (folder / "models").mkdir(mode=0o755)
    with driver(folder, "--trust", folder / "models") as running:
        yield running


@pytest.fixture(params=["trusted", "copied"])
def folder(request, served, tmp_path):
    """A folder that the driver trusts, and one that it does not."""
    if request.param == "copied":
        return tmp_path
    found = served.path.parent / "models" / tmp_path.name
    found.mkdir(mode=0o755)
    return found


@pytest.fixture(autouse=True)
def own_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("TIGHTSHIP_CACHE_DIR", str(tmp_path / "noted"))


@pytest.fixture
def client(served):
    with served.client() as connected:
        yield connected


@pytest.fixture
def file(tmp_path):
    descriptor = os.open(tmp_path / "cache", os.O_RDWR | os.O_CREAT)
    yield descriptor
    os.close(descriptor)


def write(folder, scale):
    """x times a matrix that lies in a file beside the model, and what it gives for ones."""
    import onnx

    model = onnx.load_from_string(dense(batch=4)[0])
    for tensor in model.graph.initializer:
        array = np.full(tensor.dims, scale, np.float32)
        tensor.CopyFrom(onnx.numpy_helper.from_array(array, tensor.name))
    path = folder / "m.onnx"
    (folder / "m.data").unlink(missing_ok=True)
    onnx.save(model, path, save_as_external_data=True, location="m.data", size_threshold=0)
    (folder / "m.data").chmod(0o644)
    return path


def result_of(model):
    return model.execute([X])[0]


def refusal(client, cache):
    with pytest.raises(DriverError) as caught:
        client.prepare_from_cache(cache)
    return caught.value.status


def token_of(path, file):
    return CompilationCache.of(path, (file,))


def fixed_token(_, file):
    return CompilationCache(bytes(range(32)), (file,))


def test_a_model_with_external_data_is_kept(client, folder, file):
    path = write(folder, 0.5)
    wanted = result_of(client.prepare(path, cache=token_of(path, file)))
    with client.prepare_from_cache(token_of(path, file)) as model:
        np.testing.assert_array_equal(result_of(model), wanted)
    os.unlink(folder / "m.onnx")  # of which the token has the content
    with pytest.raises(OSError, match="No such file"):
        token_of(path, file)


def overwrite(folder):
    data = bytes(255 - each for each in (folder / "m.data").read_bytes())
    with (folder / "m.data").open("r+b") as opened:
        opened.write(data)


def replace(folder):
    data = (folder / "m.data").read_bytes()
    (folder / "other").write_bytes(data[::-1])
    (folder / "other").rename(folder / "m.data")


def shorten(folder):
    os.truncate(folder / "m.data", 100)


def put_back_times(folder):
    found = os.stat(folder / "m.data")
    overwrite(folder)
    os.utime(folder / "m.data", ns=(found.st_atime_ns, found.st_mtime_ns))


CHANGES = {each.__name__: each for each in (overwrite, replace, shorten, put_back_times)}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES.keys())
def test_another_file_of_external_data_has_another_token(client, folder, file, change):
    path = write(folder, 0.5)
    client.prepare(path, cache=token_of(path, file))
    change(folder)
    assert refusal(client, token_of(path, file)) == GF
    write(folder, 0.25)
    for _ in range(2):
        model = client.prepare(path, cache=token_of(path, file))
        wanted = result_of(client.prepare(path))
        np.testing.assert_array_equal(result_of(model), wanted)
        np.testing.assert_array_equal(
            result_of(client.prepare_from_cache(token_of(path, file))), wanted
        )


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES.keys())
def test_the_driver_sees_a_trusted_file_change_whatever_the_token(client, folder, file, change):
    path = write(folder, 0.5)
    before = result_of(client.prepare(path, cache=fixed_token(path, file)))
    change(folder)
    if "models" in folder.parts:
        assert refusal(client, fixed_token(path, file)) == GF
    else:  # of which a copy was read, and the driver has nothing to look at
        with client.prepare_from_cache(fixed_token(path, file)) as model:
            np.testing.assert_array_equal(result_of(model), before)


def test_a_prepared_file_that_was_replaced_is_not_read_from_a_cache(client, folder, file):
    path = folder / "m.tship"
    for scale in (0.5, 0.25):
        tightship.prepare(write(folder, scale), path)
        path.chmod(0o644)
        cache = token_of(path, file)
        if scale == 0.25:
            assert refusal(client, cache) == GF
        wanted = result_of(client.prepare(path, cache=cache))
        np.testing.assert_array_equal(result_of(client.prepare_from_cache(cache)), wanted)


def test_tokens_tell_models_and_ways_of_preparing_apart(tmp_path):
    onnx_bytes = dense(batch=4)[0]
    builders = [sum_with(lambda b, kind, c=c: b.constant(c * X[0].repeat(2), kind)) for c in (1, 2)]
    models = [onnx_bytes, dense(batch=5)[0], *builders, write(tmp_path, 0.5)]
    tokens = [
        CompilationCache.of(each, (), preference=way).token for each in models for way in (1, 2)
    ]
    assert len(set(tokens)) == len(tokens)
    assert {len(token) for token in tokens} == {32}
    assert tokens[0] == CompilationCache.of(onnx_bytes, (), preference=1).token
    assert tokens[4] == CompilationCache.of(builders[0], (), preference=1).token


def test_a_token_does_not_depend_on_where_files_are_nor_on_notes(tmp_path, monkeypatch):
    path = write(tmp_path, 0.5)
    token = CompilationCache.of(path, ()).token
    (tmp_path / "moved").mkdir()
    for name in ("m.onnx", "m.data"):
        (tmp_path / name).rename(tmp_path / "moved" / name)
    assert CompilationCache.of(tmp_path / "moved" / "m.onnx", ()).token == token
    monkeypatch.setenv("TIGHTSHIP_CACHE_DIR", os.devnull)
    assert CompilationCache.of(tmp_path / "moved" / "m.onnx", ()).token == token


def test_a_built_model_with_constants_in_files_has_no_token_of_ours(client, tmp_path):
    path = tmp_path / "weights"
    path.write_bytes(bytes(256))
    with path.open("rb") as opened, client.file_pool(opened.fileno()) as pool:
        builder = sum_with(lambda b, kind: b.constant_in(pool, 0, kind))
        with pytest.raises(InputError, match="from their contents"):
            CompilationCache.of(builder, ())


@contextmanager
def pool_of(path, mode=PoolMode.SEALED):
    file = os.open(path, os.O_RDONLY)
    try:
        yield Pool(1, "mmap_fd", Extent((1, 1), 0, 4), 1, mode, file, is_decodable=True)
    finally:
        os.close(file)


def test_a_file_that_changes_while_a_model_is_read_is_not_noted(tmp_path):
    path = tmp_path / "weights"
    path.write_bytes(b"abcd")
    with pool_of(path) as pool:
        sources = Sources([pool])
        assert are_current(sources.noted())
        path.write_bytes(b"abce")
        assert sources.noted() is None
    with pool_of(path, PoolMode.COPY) as pool:
        assert Sources([pool]).noted() == b"[]"
    assert are_current(b"[]")


def test_a_file_that_is_gone_is_not_current(tmp_path):
    path = tmp_path / "weights"
    path.write_bytes(b"abcd")
    with pool_of(path) as pool:
        noted = Sources([pool]).noted()
    path.unlink()
    assert not are_current(noted)


def test_content_counts_where_times_are_too_new_to_tell(tmp_path, monkeypatch):
    """Two writes within a tick of the clock leave the same times."""
    path = tmp_path / "weights"
    path.write_bytes(b"abcd")
    facts = cached_sources._facts(path.stat())
    monkeypatch.setattr(cached_sources, "_facts", lambda _: facts)
    with pool_of(path) as pool:
        noted = Sources([pool]).noted()
        path.write_bytes(b"efgh")
        assert not are_current(noted)
        later = time.time_ns() + 2 * SETTLED_NS
        monkeypatch.setattr(time, "time_ns", lambda: later)
        noted = Sources([pool]).noted()
    path.write_bytes(b"ijkl")
    assert are_current(noted), "an old file is known by its times alone"
