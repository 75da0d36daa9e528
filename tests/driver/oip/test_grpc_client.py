"""The unmodified `tritonclient.grpc` against a server in a process of its own."""

import asyncio
import queue

import numpy as np
import pytest

pytest.importorskip("uvicorn")
grpc = pytest.importorskip("tritonclient.grpc")
from tritonclient.grpc import aio, service_pb2, service_pb2_grpc  # noqa: E402
from tritonclient.utils import (  # noqa: E402
    InferenceServerException,
    np_to_triton_dtype,
    triton_to_np_dtype,
)

from tests.driver.oip.served import ELEMENTS, server  # noqa: E402

A = np.arange(16, dtype=np.int32).reshape(1, 16)
B = np.ones((1, 16), np.int32)


@pytest.fixture(scope="module")
def served():
    with server("shm", "types") as served:
        yield served


@pytest.fixture(scope="module")
def client(served):
    with grpc.InferenceServerClient(served.grpc) as client:
        yield client


@pytest.fixture
def stub(served):
    import grpc as transport

    with transport.insecure_channel(served.grpc) as channel:
        yield service_pb2_grpc.GRPCInferenceServiceStub(channel)


def inputs(**arrays):
    found = []
    for name, array in (arrays or {"INPUT0": A, "INPUT1": B}).items():
        found.append(grpc.InferInput(name, list(array.shape), np_to_triton_dtype(array.dtype)))
        found[-1].set_data_from_numpy(array)
    return found


def test_a_server_says_what_it_is_and_has(client):
    assert client.is_server_live()
    assert client.is_server_ready()
    assert client.is_model_ready("simple")
    assert not client.is_model_ready("simple", "2")
    assert not client.is_model_ready("other")
    with pytest.raises(InferenceServerException, match="unknown model: 'other'") as caught:
        client.get_model_metadata("other")
    assert caught.value.status() == "StatusCode.NOT_FOUND"
    assert "system_shared_memory" in client.get_server_metadata().extensions
    said = client.get_model_metadata("simple", as_json=True)
    assert said["inputs"][0] == {"name": "INPUT0", "datatype": "INT32", "shape": ["1", "16"]}
    config = client.get_model_config("identity_BYTES").config
    assert (config.input[0].data_type, list(config.input[0].dims)) == (13, [-1])


@pytest.mark.parametrize("compression", [None, "gzip", "deflate"])
def test_a_model_is_run(client, compression):
    requested = [grpc.InferRequestedOutput("OUTPUT1")]
    options = {"compression_algorithm": compression, "request_id": "seven"}
    result = client.infer("simple", inputs(), outputs=requested, **options)
    assert result.get_response().id == "seven"
    assert np.array_equal(result.as_numpy("OUTPUT1"), A - B)
    assert result.as_numpy("OUTPUT0") is None


@pytest.mark.parametrize("datatype", ELEMENTS)
def test_every_datatype_goes_there_and_back(client, datatype):
    array = np.array([[0, 1, 2], [3, 4, 5]]).astype(triton_to_np_dtype(datatype))
    if datatype == "BYTES":
        array = np.array([[b"", b"a", b"\xc3\xa9"], [b"long" * 99, b"x", b"y"]], object)
    given = grpc.InferInput("x", [2, 3], datatype)
    given.set_data_from_numpy(array)
    assert np.array_equal(client.infer(f"identity_{datatype}", [given]).as_numpy("y"), array)


def as_contents(datatype, field, elements):
    request = service_pb2.ModelInferRequest(model_name=f"identity_{datatype}")
    tensor = request.inputs.add(name="x", datatype=datatype, shape=[2, 3])
    getattr(tensor.contents, field).extend(elements)
    return request


@pytest.mark.parametrize(
    ("datatype", "field"),
    [
        ("BOOL", "bool_contents"),
        ("INT8", "int_contents"),
        ("INT64", "int64_contents"),
        ("UINT16", "uint_contents"),
        ("UINT64", "uint64_contents"),
        ("FP32", "fp32_contents"),
        ("FP64", "fp64_contents"),
        ("BYTES", "bytes_contents"),
    ],
)
def test_elements_may_come_in_fields_of_their_type(stub, datatype, field):
    elements = [b"a"] * 6 if datatype == "BYTES" else [0, 1] * 3
    response = stub.ModelInfer(as_contents(datatype, field, elements))
    given = triton_to_np_dtype(datatype)
    raw = b"\1\0\0\0a" * 6 if datatype == "BYTES" else np.array(elements, given).tobytes()
    assert response.raw_output_contents[0] == raw


@pytest.mark.parametrize(
    ("datatype", "field", "elements", "match"),
    [
        ("INT8", "int_contents", [1] * 5, "Expected 6, got 5"),
        ("INT8", "int_contents", [128] * 6, "cannot hold"),
        ("FP16", "fp32_contents", [1.0] * 6, "raw_input_contents only"),
        ("INT8", "fp32_contents", [1.0] * 6, "Expected 6, got 0"),
    ],
)
def test_elements_that_do_not_fit_are_refused(stub, datatype, field, elements, match):
    import grpc as transport

    with pytest.raises(transport.RpcError, match=match) as caught:
        stub.ModelInfer(as_contents(datatype, field, elements))
    assert caught.value.code() is transport.StatusCode.INVALID_ARGUMENT


def test_what_does_not_fit_is_refused_in_the_words_of_http(client):
    with pytest.raises(InferenceServerException, match="expected 2 inputs but got 1") as caught:
        client.infer("simple", inputs()[:1])
    assert caught.value.status() == "StatusCode.INVALID_ARGUMENT"
    with pytest.raises(InferenceServerException, match="unknown model: 'none'"):
        client.infer("none", inputs())
    late = {"timeout": 1}
    with pytest.raises(InferenceServerException, match="Request timeout expired") as caught:
        client.infer("simple", inputs(), **late)
    assert caught.value.status() == "StatusCode.UNAVAILABLE"


def test_models_are_unloaded_and_loaded_for_both_endpoints(served, client):
    http = pytest.importorskip("tritonclient.http")
    with http.InferenceServerClient(served.http) as other:
        client.unload_model("identity_INT16")
        index = {each.name: each.state for each in client.get_model_repository_index().models}
        assert index["identity_INT16"] == "UNAVAILABLE"
        assert not other.is_model_ready("identity_INT16")
        other.load_model("identity_INT16")
        assert client.is_model_ready("identity_INT16")
    with pytest.raises(InferenceServerException, match="was given as a file"):
        client.load_model("simple", config="{}")


def test_requests_are_counted_for_both_endpoints(served, client):
    http = pytest.importorskip("tritonclient.http")

    def count():
        stats = client.get_inference_statistics("simple").model_stats[0]
        return stats.inference_stats.success.count

    before = count()
    client.infer("simple", inputs())
    assert count() == before + 1
    with http.InferenceServerClient(served.http) as other:
        said = other.get_inference_statistics("simple")["model_stats"][0]
    assert said["inference_stats"]["success"]["count"] == before + 1
    assert len(client.get_inference_statistics().model_stats) > 1


def test_settings_are_said_and_stay(client):
    assert list(client.get_trace_settings().settings["trace_level"].value) == ["OFF"]
    assert client.get_log_settings().settings["log_error"].bool_param
    with pytest.raises(InferenceServerException, match="cannot be changed") as caught:
        client.update_trace_settings(settings={"trace_level": ["TIMESTAMPS"]})
    assert caught.value.status() == "StatusCode.UNIMPLEMENTED"
    with pytest.raises(InferenceServerException, match="cannot be changed"):
        client.update_log_settings({"log_error": False})


def test_requests_of_a_stream_are_answered_in_order(served):
    found = queue.Queue()
    with grpc.InferenceServerClient(served.grpc) as client:
        client.start_stream(lambda result, error: found.put((result, error)))
        for number in range(5):
            client.async_stream_infer("simple", inputs(), request_id=str(number))
        client.async_stream_infer("none", inputs())
        client.async_stream_infer("simple", inputs(), enable_empty_final_response=True)
        answers = [found.get(timeout=30) for _ in range(7)]
    assert [result.get_response().id for result, _ in answers[:5]] == list("01234")
    assert np.array_equal(answers[0][0].as_numpy("OUTPUT0"), A + B)
    assert "unknown model: 'none'" in str(answers[5][1])
    assert answers[6][0].get_response().parameters["triton_final_response"].bool_param


def test_the_asynchronous_client_runs_models_at_once(served):
    async def run():
        async with aio.InferenceServerClient(served.grpc) as client:
            assert await client.is_server_ready()
            runs = [client.infer("simple", inputs()) for _ in range(20)]
            return await asyncio.gather(*runs)

    for result in asyncio.run(run()):
        assert np.array_equal(result.as_numpy("OUTPUT0"), A + B)


def test_a_message_has_a_limit():
    with server("small") as served, grpc.InferenceServerClient(served.grpc) as client:
        large = np.zeros((1 << 17, 4), np.float32)
        with pytest.raises(InferenceServerException, match="larger than max"):
            client.infer("open", inputs(x=large))
        assert client.is_server_live()
