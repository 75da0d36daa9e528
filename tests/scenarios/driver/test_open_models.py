"""ONNX models whose files leave lengths open, over the socket: the driver's own and clients'."""

import threading

import numpy as np
import onnxruntime
import pytest

import tightship
from tests.driver.native_driver import driver
from tests.models import parse
from tests.small_models import dense, dense_result
from tests.zoo.exports import export
from tightship.driver.models.loader import Loader
from tightship.driver.models.sources import open_onnx
from tightship.driver.types.status import ErrorStatus
from tightship.engine.arenas.arena_group import ArenaGroup
from tightship.errors import DriverError, InputError
from tightship.frontend.onnx import open_bytes
from tightship.loading import load

MODEL, WEIGHTS = dense()
IMAGES = """images (float[n,2,h,w] x, float[n] s) => (float[n,2,p,q] y, float[n] t) {
    z = MaxPool<kernel_shape = [2, 2], strides = [2, 2]>(x)
    y = Relu(z)
    t = Add(s, s)
}"""
DATA = "data (float[n] x, bool[n] c) => (float[m] y) { y = Compress<axis = 0>(x, c) }"
TEXTS = "texts (string[n] x) => (string[n] y) { y = Identity(x) }"


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    folder = tmp_path_factory.mktemp("driver")
    (folder / "dense.onnx").write_bytes(MODEL)
    with driver(folder, folder / "dense.onnx", "--shape", "x=2x32") as running:
        yield running


@pytest.fixture(params=["named", "given"])
def model(request, client):
    """One of the driver's own, which has a program for two rows, or one that it is given."""
    if request.param == "named":
        return client.prepare_named("dense")
    return client.prepare(MODEL)


def rows(count):
    return np.random.default_rng(count).standard_normal((count, 32), np.float32)


def check(result, x):
    np.testing.assert_allclose(result, dense_result(x, WEIGHTS), 1e-4, 1e-4)


def refusal(call, *arguments):
    with pytest.raises(DriverError) as caught:
        call(*arguments)
    return caught.value.status


def test_each_request_says_how_many_rows_there_are(model):
    assert model.interface.inputs[0].dimensions == (0, 32)
    assert model.interface.outputs[0].dimensions[0] == 0
    for count in (2, 5, 1, 5, 2, 64):
        x = rows(count)
        check(model.execute([x])[0], x)


def test_what_the_file_fixes_is_fixed(model):
    with pytest.raises(InputError, match=r"takes float32 and \[0, 32\]"):
        model.execute([rows(2)[:, :31]])


def test_buffers_take_the_rows_of_each_run(client, model):
    given, result = client.allocate(inputs=[(model, 0)]), client.allocate(outputs=[(model, 0)])
    for count in (3, 2):
        x = rows(count)
        given.copy_from(x, x.shape)
        wrong = refusal(model.execute, [given.of(count, 31)], [result.of()])
        assert wrong == ErrorStatus.INVALID_ARGUMENT
        model.execute([given.of(count, 32)], [result.of()])
        y = np.empty((count, 8), np.float32)
        result.copy_to(y)
        check(y, x)


def test_outputs_are_written_where_they_are_placed(client, model):
    with client.segment(1 << 14) as segment:
        for count in (2, 7):
            x, y = segment.place((count, 32), "f4"), segment.place((count, 8), "f4")
            x.array[...] = rows(count)
            for _ in range(5):
                y.array[...] = 0
                model.execute([x], [y])
                check(y.array, x.array)
        other = segment.place((count + 1, 8), "f4")
        assert refusal(model.execute, [x], [other]) == ErrorStatus.INVALID_ARGUMENT


def test_a_model_of_several_inputs_and_open_axes_gives_what_onnxruntime_gives(client):
    source = parse(IMAGES).SerializeToString()
    session = onnxruntime.InferenceSession(source, providers=["CPUExecutionProvider"])
    model = client.prepare(source)
    for shape in [(1, 2, 6, 4), (3, 2, 4, 4), (1, 2, 6, 4)]:
        x, s = np.random.default_rng(1).standard_normal(shape, np.float32), rows(shape[0])[:, 0]
        wanted = session.run(None, {"x": x, "s": s.copy()})
        for result, expected in zip(model.execute([x, s.copy()]), wanted, strict=True):
            np.testing.assert_array_equal(result, expected)
    wrong = np.zeros((1, 2, 4, 4), np.float32), np.zeros(2, np.float32)
    assert refusal(model.execute, wrong) == ErrorStatus.GENERAL_FAILURE


def test_what_has_no_numbers_is_refused(client):
    with pytest.raises(DriverError, match="`x` is a tensor of object") as caught:
        client.prepare(parse(TEXTS).SerializeToString())
    assert caught.value.status == ErrorStatus.GENERAL_FAILURE


def test_a_model_whose_outputs_data_decide_fails_when_it_is_run(client):
    model = client.prepare(parse(DATA).SerializeToString())
    given = np.ones(4, np.float32), np.array([True, False, True, True])
    assert refusal(model.execute, given) == ErrorStatus.GENERAL_FAILURE


def test_a_prepared_model_has_the_shapes_that_it_was_prepared_for(client, tmp_path):
    path = tmp_path / "m.tship"
    tightship.prepare(MODEL, path, shapes=[{"x": (count, 32)} for count in (2, 5)])
    model = client.prepare(path)
    assert model.interface.inputs[0].dimensions == (0, 32)
    for count in (5, 2):
        check(model.execute([rows(count)])[0], rows(count))
    assert refusal(model.execute, [rows(3)]) == ErrorStatus.GENERAL_FAILURE
    tightship.prepare(MODEL, path, shapes={"x": (4, 32)})
    model = client.prepare(path)
    assert model.interface.inputs[0].dimensions == (4, 32)
    check(model.execute([rows(4)])[0], rows(4))


class Watched:
    """A file of which one graph at a time may be made."""

    def __init__(self, file):
        self._file, self._is_busy, self.declared = file, False, file.declared

    def graph(self, *arguments, **named):
        assert not self._is_busy
        self._is_busy = True
        found = self._file.graph(*arguments, **named)
        self._is_busy = False
        return found


def test_a_file_is_read_for_one_request_after_another():
    arenas = ArenaGroup()
    found = open_onnx(Watched(open_bytes(MODEL)), Loader(arenas))
    failures = []

    def work(first):
        try:
            for count in range(first, 60, 4):
                assert found.at([(count, 32)]).outputs[0].dimensions == (count, 8)
        except BaseException as error:
            failures.append(error)
            raise

    threads = [threading.Thread(target=work, args=(first,)) for first in range(1, 5)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    found.model.close()
    arenas.close()
    assert not failures


def test_quantized_weights_are_there_once_whatever_the_lengths():
    arenas = ArenaGroup()
    found = open_onnx(open_bytes(export("qwen2")), Loader(arenas)).model
    model, _ = found.at(((2, 16), (2, 16)))
    held = model.memory_stats().weights_bytes
    for shape in ((2, 24), (1, 24), (1, 1), (5, 7)):
        model.output_shapes({"ids": shape, "mask": shape})
        assert model.memory_stats().weights_bytes < held + (256 << 10)
    assert model.programs.held >= 2
    found.close()
    arenas.close()


def test_a_loaded_model_says_which_lengths_are_open_and_what_it_gives_for_others():
    with load(MODEL, shapes={"x": (2, 32)}) as model:
        assert model.open_lengths == {"x": (True, False)}
        assert model.output_shapes({"x": (2, 32)}) == {"y": (2, 8)}
        assert model.output_shapes({"x": (5, 32)}) == {"y": (5, 8)}
        assert model.programs.held == 2
        with pytest.raises(InputError, match=r"does not accept these input shapes: `x` \[5, 31\]"):
            model.output_shapes({"x": (5, 31)})
    fixed, _ = dense(batch=4)
    with load(fixed) as model:
        assert model.open_lengths == {"x": (False, False)}
        assert model.output_shapes({"x": (4, 32)}) == {"y": (4, 8)}
        with pytest.raises(InputError, match="does not accept"):
            model.output_shapes({"x": (5, 32)})


def test_a_shared_model_says_so_too(tmp_path, monkeypatch):
    monkeypatch.setenv("TIGHTSHIP_CACHE_DIR", str(tmp_path / "cache"))
    for source, is_open in ((MODEL, True), (dense(batch=4)[0], False)):
        (tmp_path / "m.onnx").write_bytes(source)
        with load(tmp_path / "m.onnx", shapes={"x": (4, 32)}, share=True) as model:
            assert model.open_lengths == {"x": (is_open, False)}
