"""Inferences over gRPC from message to message: what is read and described once."""

import numpy as np
import pytest

pytest.importorskip("grpc")
from tests.driver.oip.endpoint_setting import Setting, X
from tightship.driver.oip.grpc import infer
from tightship.driver.oip.grpc.calls import FORM_BYTES_MAX, GrpcCalls
from tightship.driver.oip.refusal import OipError
from tightship.driver.oip.schema import message_classes

CLASSES = message_classes()


@pytest.fixture
def calls(tmp_path):
    setting = Setting(tmp_path)
    yield GrpcCalls(setting.endpoint)
    setting.close()


def message(*raw, identifier=""):
    request = CLASSES["ModelInferRequest"](model_name="neg", id=identifier)
    request.inputs.add(name="x", datatype="FP32", shape=[1, 4])
    request.raw_input_contents.extend(each.tobytes() for each in raw)
    return request.SerializeToString()


def answer(calls, data):
    found = calls.infer(calls.asked(data), calls.caller("", ""))
    return CLASSES["ModelInferResponse"].FromString(found)


def values(response):
    return np.frombuffer(response.raw_output_contents[0], np.float32)


@pytest.mark.parametrize("identifier", ["", "7", "i" * FORM_BYTES_MAX])
def test_messages_that_differ_in_contents_alone_are_told_apart(calls, identifier):
    for number in range(3):
        found = answer(calls, message(X + number, identifier=identifier))
        assert np.array_equal(values(found), -(X + number))
        assert (found.model_name, found.model_version, found.id) == ("neg", "1", identifier)
        (output,) = found.outputs
        assert (output.name, output.datatype, list(output.shape)) == ("y", "FP32", [1, 4])


def test_headers_of_equal_messages_are_read_and_written_once(calls, monkeypatch):
    answer(calls, message(X))
    monkeypatch.setattr("tightship.driver.oip.grpc.calls.request_of", None)
    monkeypatch.setattr("tightship.driver.oip.grpc.calls.fill", None)
    assert np.array_equal(values(answer(calls, message(X + 1))), -(X + 1))


def test_other_numbers_of_contents_are_refused_each_time(calls):
    answer(calls, message(X))
    for _ in range(2):
        with pytest.raises(OipError, match="to be 1 for model 'neg', got 2"):
            calls.asked(message(X, X))


def test_a_form_says_where_a_region_has_an_output():
    response = CLASSES["ModelInferResponse"]()
    parameters = (("shared_memory_region", "r"), ("shared_memory_byte_size", 16))
    infer.fill(response, [("y", infer.type_of("FP32"), (1, 4), parameters)])
    (output,) = response.outputs
    assert output.parameters["shared_memory_region"].string_param == "r"
    assert output.parameters["shared_memory_byte_size"].int64_param == 16
