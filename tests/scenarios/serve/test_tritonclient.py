"""The unmodified `tritonclient` against a server in a process of its own."""

import asyncio
import uuid

import numpy as np
import pytest

pytest.importorskip("uvicorn")
http = pytest.importorskip("tritonclient.http")
from tritonclient.http import aio  # noqa: E402
from tritonclient.utils import (  # noqa: E402
    InferenceServerException,
    np_to_triton_dtype,
    shared_memory,
    triton_to_np_dtype,
)

from tests.driver.oip.served import ELEMENTS, server  # noqa: E402

A = np.arange(16, dtype=np.int32).reshape(1, 16)
B = np.ones((1, 16), np.int32)


@pytest.fixture(scope="module")
def address():
    with server("shm", "types") as served:
        yield served.http


@pytest.fixture
def client(address):
    with http.InferenceServerClient(address) as client:
        yield client
        client.unregister_system_shared_memory()


@pytest.fixture
def region():
    made = []

    def make(name, size_bytes):
        key = f"/oip_{uuid.uuid4().hex}"
        made.append(shared_memory.create_shared_memory_region(name, key, size_bytes))
        return made[-1], key

    yield make
    for each in made:
        shared_memory.destroy_shared_memory_region(each)


def inputs(module=http, *, binary=(True, True), **arrays):
    found = []
    for index, (name, array) in enumerate((arrays or {"INPUT0": A, "INPUT1": B}).items()):
        found.append(module.InferInput(name, list(array.shape), np_to_triton_dtype(array.dtype)))
        found[-1].set_data_from_numpy(array, binary_data=binary[index])
    return found


def in_region(name, region, size_bytes, offset=0):
    found = http.InferInput(name, [1, 16], "INT32")
    found.set_shared_memory(region, size_bytes, offset)
    return found


def refused(client, match, given, **options):
    with pytest.raises(InferenceServerException, match=match) as caught:
        client.infer("simple", given, **options)
    return caught.value.status()


def test_a_server_says_what_it_is_and_has(client):
    assert client.is_server_live()
    assert client.is_server_ready()
    assert client.is_model_ready("simple")
    assert client.is_model_ready("simple", "1")
    assert not client.is_model_ready("simple", "2")
    assert not client.is_model_ready("other")
    extensions = client.get_server_metadata()["extensions"]
    assert {"system_shared_memory", "cuda_shared_memory", "binary_tensor_data"} <= set(extensions)


def test_a_model_says_what_it_takes(client):
    said = client.get_model_metadata("simple")
    assert said["inputs"][0] == {"name": "INPUT0", "datatype": "INT32", "shape": [1, 16]}
    assert [each["name"] for each in said["outputs"]] == ["OUTPUT0", "OUTPUT1"]
    assert client.get_model_config("identity_BYTES")["input"][0]["data_type"] == "TYPE_STRING"
    assert client.get_model_metadata("open")["inputs"][0]["shape"] == [-1, 4]


@pytest.mark.parametrize("binary_in", [False, True])
@pytest.mark.parametrize("binary_out", [False, True])
@pytest.mark.parametrize("compression", [None, "gzip", "deflate"])
def test_a_model_is_run(client, binary_in, binary_out, compression):
    wish = http.InferRequestedOutput("OUTPUT1", binary_data=binary_out)
    given = inputs(binary=(binary_in, True))
    options = {"request_compression_algorithm": compression, "request_id": "seven"}
    result = client.infer("simple", given, outputs=[wish], **options)
    assert result.get_response()["id"] == "seven"
    assert np.array_equal(result.as_numpy("OUTPUT1"), A - B)
    assert result.as_numpy("OUTPUT0") is None


def test_all_outputs_come_if_none_is_named(client):
    result = client.infer("simple", inputs())
    assert np.array_equal(result.as_numpy("OUTPUT0"), A + B)
    assert np.array_equal(result.as_numpy("OUTPUT1"), A - B)


@pytest.mark.parametrize("is_binary", [False, True])
def test_elements_that_are_no_numbers_go_there_and_back(client, is_binary):
    array = np.array([[np.nan, np.inf, -np.inf], [0, -0.0, 1]], np.float32)
    given = http.InferInput("x", [2, 3], "FP32")
    given.set_data_from_numpy(array, binary_data=is_binary)
    wish = http.InferRequestedOutput("y", binary_data=is_binary)
    found = client.infer("identity_FP32", [given], outputs=[wish]).as_numpy("y")
    assert np.array_equal(found, array, equal_nan=True)


@pytest.mark.parametrize("datatype", ELEMENTS)
@pytest.mark.parametrize("is_binary", [False, True])
def test_every_datatype_goes_there_and_back(client, datatype, is_binary):
    dtype = triton_to_np_dtype(datatype)
    array = np.array([[0, 1, 2], [3, 4, 5]]).astype(dtype)
    if datatype == "BYTES":
        array = np.array([[b"", b"a", b"\xc3\xa9"], [b"long" * 99, b"x", b"y"]], object)
    given = http.InferInput("x", [2, 3], datatype)
    if datatype in {"FP16", "BF16"} and not is_binary:
        pytest.skip("JSON has no form for it")
    given.set_data_from_numpy(array, binary_data=is_binary)
    wish = http.InferRequestedOutput("y", binary_data=is_binary)
    result = client.infer(f"identity_{datatype}", [given], outputs=[wish]).as_numpy("y")
    if datatype == "BYTES" and not is_binary:
        result = np.array([each.encode() for each in result.flat], object).reshape(2, 3)
    assert np.array_equal(result, array)


def test_other_shapes_are_taken_where_the_file_leaves_them_open(client):
    x = np.linspace(-1, 1, 20, dtype=np.float32).reshape(5, 4)
    assert np.array_equal(client.infer("open", inputs(x=x)).as_numpy("y"), np.maximum(x, 0))


def test_what_does_not_fit_is_refused_in_tritons_words(client):
    assert (
        refused(client, "expected 2 inputs but got 1 inputs for model 'simple'", inputs()[:1])
        == "400"
    )
    refused(client, "unexpected inference input 'x'", inputs(x=A))
    wrong = inputs(INPUT0=A.astype(np.float32), INPUT1=B)
    refused(client, "data-type is 'FP32', but model 'simple' expects 'INT32'", wrong)
    short = inputs(INPUT0=A[:, :8], INPUT1=B)
    refused(client, r"unexpected shape for input 'INPUT0'.*\[1,16\], got \[1,8\]", short)
    wish = [http.InferRequestedOutput("y")]
    refused(client, "unexpected inference output 'y'", inputs(), outputs=wish)
    with pytest.raises(InferenceServerException, match="unknown model: 'none'") as caught:
        client.infer("none", inputs())
    assert caught.value.status() == "404"


def test_models_are_unloaded_and_loaded(client):
    client.unload_model("identity_INT8")
    index = {each["name"]: each["state"] for each in client.get_model_repository_index()}
    assert index["identity_INT8"] == "UNAVAILABLE"
    assert index["simple"] == "READY"
    assert not client.is_model_ready("identity_INT8")
    with pytest.raises(InferenceServerException, match="not ready"):
        client.infer("identity_INT8", inputs(x=np.zeros((2, 3), np.int8)))
    client.load_model("identity_INT8")
    assert client.is_model_ready("identity_INT8")
    with pytest.raises(InferenceServerException, match="failed to poll from model repository"):
        client.load_model("other")


def test_requests_are_counted(client):
    def counts():
        stats = client.get_inference_statistics("simple")["model_stats"][0]["inference_stats"]
        return stats["success"]["count"], stats["fail"]["count"]

    before = counts()
    client.infer("simple", inputs())
    refused(client, "expected 2", inputs()[:1])
    assert counts() == (before[0] + 1, before[1] + 1)
    assert len(client.get_inference_statistics()["model_stats"]) > 1


def test_tensors_travel_in_regions(client, region):
    given, key = region("given", 128)
    taken, taken_key = region("taken", 128)
    shared_memory.set_shared_memory_region(given, [A, B])
    client.register_system_shared_memory("given", key, 128)
    client.register_system_shared_memory("taken", taken_key, 128)
    wish = http.InferRequestedOutput("OUTPUT0")
    wish.set_shared_memory("taken", 64, 64)
    both = [in_region("INPUT0", "given", 64), in_region("INPUT1", "given", 64, 64)]
    result = client.infer("simple", both, outputs=[wish])
    assert "data" not in result.get_output("OUTPUT0")
    assert np.array_equal(shared_memory.get_contents_as_numpy(taken, np.int32, [1, 16], 64), A + B)
    mixed = client.infer("simple", [in_region("INPUT0", "given", 64), inputs()[1]])
    assert np.array_equal(mixed.as_numpy("OUTPUT0"), A + B)
    assert len(client.get_system_shared_memory_status()) == 2
    client.unregister_system_shared_memory("given")
    assert [each["name"] for each in client.get_system_shared_memory_status()] == ["taken"]


def test_a_region_far_into_its_object_is_read_there(client, region):
    given, key = region("given", 4096 * 1024)
    shared_memory.set_shared_memory_region(given, [A], offset=4096 * 1023)
    client.register_system_shared_memory("given", key, 64, 4096 * 1023)
    result = client.infer("simple", [in_region("INPUT0", "given", 64), inputs()[1]])
    assert np.array_equal(result.as_numpy("OUTPUT0"), A + B)


def test_ranges_outside_a_region_are_refused(client, region):
    _, key = region("given", 128)
    client.register_system_shared_memory("given", key, 64)

    def refuse(match, size_bytes, offset=0):
        given = [in_region("INPUT0", "given", size_bytes, offset), inputs()[1]]
        return refused(client, match, given)

    refuse("Invalid offset for shared memory region", 64, 2**64 - 32)
    refuse(r"Invalid offset \+ byte size", 64, 1)
    refuse("Integer overflow detected: byte_size", 2**64 - 32, 32)
    refuse(
        "input byte size mismatch for input 'INPUT0' for model 'simple'. Expected 64, got 32", 32
    )
    wish = http.InferRequestedOutput("OUTPUT0")
    wish.set_shared_memory("given", 8)
    match = r"for output 'OUTPUT0' \(8 bytes\) should be at least 64 bytes to hold"
    assert refused(client, match, inputs(), outputs=[wish]) == "500"


def test_a_truncated_region_is_an_error_and_the_server_goes_on(client, region):
    _, key = region("given", 8192)
    client.register_system_shared_memory("given", key, 8192)
    with open(f"/dev/shm{key}", "r+b") as file:
        file.truncate(16)
    refused(client, "shorter than", [in_region("INPUT0", "given", 64), inputs()[1]])
    assert client.is_server_live()


def test_registrations_are_refused_in_tritons_words(client, region):
    _, key = region("given", 64)

    def refuse(match, *call):
        with pytest.raises(InferenceServerException, match=match):
            client.register_system_shared_memory(*call)

    refuse("reserved prefix", "a", "///triton_python_backend_shm_region_1", 8)
    refuse("invalid shm key", "a", "///", 8)
    refuse("invalid args", "a", key, 65)
    refuse("invalid args", "a", key, 64, 1)
    refuse("Unable to open shared memory region: '/nope'", "a", "/nope", 64)
    client.register_system_shared_memory("a", key, 64)
    refuse("shared memory region 'a' already in manager", "a", key, 64)
    client.unregister_system_shared_memory("unknown")
    assert len(client.get_system_shared_memory_status("a")) == 1


def test_cuda_answers_as_a_build_without_it(client):
    assert client.get_cuda_shared_memory_status() == []
    with pytest.raises(InferenceServerException, match="region: 'a', GPUs not supported"):
        client.register_cuda_shared_memory("a", b"QUJD", 0, 64)
    client.unregister_cuda_shared_memory()


def test_client_shared_memory_is_off_by_default():
    with server() as served, http.InferenceServerClient(served.http) as client:
        assert client.get_system_shared_memory_status() == []
        calls = (
            lambda: client.register_system_shared_memory("a", "/a", 64),
            client.unregister_system_shared_memory,
            lambda: client.register_cuda_shared_memory("a", b"QUJD", 0, 64),
        )
        for call in calls:
            with pytest.raises(InferenceServerException, match="is disabled") as caught:
                call()
            assert caught.value.status() == "501"


def test_the_asynchronous_client_runs_models_at_once(address):
    async def run():
        async with aio.InferenceServerClient(address) as client:
            assert await client.is_server_ready()
            runs = [client.infer("simple", inputs(aio)) for _ in range(20)]
            return await asyncio.gather(*runs)

    for result in asyncio.run(run()):
        assert np.array_equal(result.as_numpy("OUTPUT0"), A + B)
