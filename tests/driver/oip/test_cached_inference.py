"""Requests that come again with every tensor in regions: bound once, right every time."""

import gc
import os
import weakref
from contextlib import ExitStack
from pathlib import Path

import numpy as np
import onnx
import pytest

from tests.driver.oip.endpoint_setting import TEXTS, Setting, X
from tests.models import parse
from tightship.driver.oip.http.message import HttpRequest
from tightship.driver.oip.infer_request import decode
from tightship.driver.oip.inference import bind


@pytest.fixture
def setting(tmp_path):
    found = Setting(tmp_path)
    yield found
    found.close()


def test_new_bytes_give_new_results_and_the_same_answer(setting):
    answers = []
    for scale in (1, 2, 3):
        setting.put(X * scale)
        answers.append(setting.infer())
        assert np.array_equal(setting.got(), -X * scale)
    assert answers[0][0] == 200
    assert answers == answers[:1] * 3
    assert setting.count().success_count == 3


def test_integers_are_read_anew_each_time(setting):
    for scale in (1, 2):
        setting.put(X.astype(np.int32) * scale)
        assert setting.infer(model="double", datatype="INT32")[0] == 200
        assert np.array_equal(setting.got(dtype=np.int32), X * 2 * scale)


@pytest.mark.parametrize(("model", "datatype"), [("neg", "FP32"), ("double", "INT32")])
def test_what_may_be_an_index_is_copied_before_it_is_used(setting, model, datatype):
    request = decode(setting.body(datatype=datatype), None)
    with ExitStack() as uses:
        bound = bind(setting.repository.served(model), request, setting.regions, uses)
        (window,) = [each for part, each in bound.windows.items() if not part.offset_bytes]
        assert np.shares_memory(bound.arrays["x"], window.bytes) == (datatype == "FP32")


@pytest.mark.parametrize("taken", [0, 8])
def test_an_output_may_lie_where_an_input_does(setting, taken):
    setting.register("again")
    for out in ("r", "again"):
        for scale in (1, 2):
            setting.put(X * scale)
            assert setting.infer(taken=taken, out=out)[0] == 200
            assert np.array_equal(setting.got(taken), -X * scale)


@pytest.mark.parametrize(("model", "datatype"), [("neg", "FP32"), ("double", "INT32")])
def test_an_output_larger_than_its_place_is_refused(setting, model, datatype):
    body = setting.body(taken=32, datatype=datatype).decode()
    small = body.replace('_byte_size": 16, "shared_memory_offset": 32', '_byte_size": 8').encode()
    target = f"/v2/models/{model}/infer"
    response = setting.calls.respond(HttpRequest("POST", target, {}, small))
    assert response.status == 500
    assert b"output 'y' (8 bytes) should be at least 16 bytes to hold" in response.parts[0]


def test_bytes_at_any_offset_are_read(setting):
    for scale in (1, 2):
        setting.put(X * scale, 1)
        assert setting.infer(given=1, taken=33)[0] == 200
        assert np.array_equal(setting.got(33), -X * scale)


def test_a_region_that_is_gone_is_used_no_more(setting, tmp_path):
    setting.put(X)
    assert setting.infer()[0] == 200
    maps = (tmp_path / "key").stat().st_ino
    setting.regions.unregister("r")
    assert setting.infer() == (404, {"error": "Unable to find shared memory region: 'r'"})
    assert f" {maps} " not in Path("/proc/self/maps").read_text()
    (tmp_path / "key").unlink()
    setting.path.write_bytes(bytes(64))
    setting.register()
    setting.put(X * 5)
    assert setting.infer()[0] == 200
    assert np.array_equal(setting.got(), -X * 5)


def test_a_region_that_is_shortened_is_refused_from_then_on(setting):
    assert setting.infer()[0] == 200
    os.truncate(setting.path, 16)
    assert "shorter" in setting.infer()[1]["error"]
    os.truncate(setting.path, 0)
    assert "shorter" in setting.infer()[1]["error"]
    assert setting.count().fail_count == 2


def test_a_model_that_is_loaded_anew_is_the_one_that_runs(setting, tmp_path):
    setting.put(X)
    assert setting.infer()[0] == 200
    onnx.save(parse(TEXTS["neg"].replace("Neg", "Relu")), tmp_path / "neg.onnx")
    setting.repository.load("neg")
    assert setting.infer()[0] == 200
    assert np.array_equal(setting.got(), X)


def test_a_request_that_is_refused_is_refused_again(setting):
    for _ in range(2):
        status, said = setting.infer(taken=56)
        assert (status, said["error"]) == (
            400,
            "Invalid offset + byte size for shared memory region: 'r'",
        )


def test_nothing_stands_of_a_model_that_is_unloaded(setting):
    request = decode(setting.body(), None)
    setting.endpoint.infer("neg", None, request)
    cached = setting.endpoint._inferences.cached
    runs = weakref.ref(cached(request).again)
    setting.repository.unload("neg")
    assert cached(request) is None
    gc.collect()
    assert runs() is None
