"""A repository in Triton's layout, by the calls of the unmodified `tritonclient`."""

import asyncio
import json
import queue
import shutil
import threading
import time
import uuid
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

pytest.importorskip("uvicorn")
http = pytest.importorskip("tritonclient.http")
grpc = pytest.importorskip("tritonclient.grpc")
from tritonclient.grpc import aio as grpc_aio  # noqa: E402
from tritonclient.http import aio as http_aio  # noqa: E402
from tritonclient.utils import InferenceServerException, shared_memory  # noqa: E402

from tests.driver.oip.serve_process import serve  # noqa: E402
from tests.driver.oip.triton_repository import write_model, write_version  # noqa: E402

ALL = "version_policy { all {} }"
EXPLICIT = ("--model-control-mode", "explicit")
PATIENCE_S = 60


@pytest.fixture(scope="module")
def repository(tmp_path_factory):
    folder = tmp_path_factory.mktemp("models")
    write_model(folder, "added", (1, 2), ALL)
    write_model(folder, "other", (3,))
    write_model(folder, "joined", (1,), "dynamic_batching { max_queue_delay_microseconds: 500 }")
    return folder


@pytest.fixture(scope="module")
def server(repository):
    options = ("--model-repository", repository, *EXPLICIT, "--load-model", "added")
    with serve(*options, "--allow-client-shm") as found:
        yield found


@pytest.fixture(params=[http, grpc], ids=["http", "grpc"])
def module(request):
    return request.param


@pytest.fixture
def client(server, module):
    with connected(server, module) as found:
        yield found
        found.load_model("added")
        found.unload_model("other")


def connected(server, module):
    return module.InferenceServerClient(server.http if module is http else server.grpc)


def rows(module, count=1, columns=4):
    given = module.InferInput("x", [count, columns], "FP32")
    given.set_data_from_numpy(np.zeros((count, columns), np.float32))
    return [given]


def answer(client, module, version="", count=1):
    """The number that was added, and the version that says it did."""
    found = client.infer("added", rows(module, count), model_version=version)
    response = found.get_response()
    said = response["model_version"] if module is http else response.model_version
    assert found.as_numpy("y").shape == (count, 4)
    return found.as_numpy("y")[0, 0], said


def as_json(said):
    """The JSON form that the HTTP client returns, from either client."""
    if isinstance(said, dict):
        return said
    from google.protobuf.json_format import MessageToDict

    return MessageToDict(said, preserving_proto_field_name=True)


def index(client):
    """States by name and version."""
    found = client.get_model_repository_index()
    entries = found if isinstance(found, list) else as_json(found)["models"]
    return {(each["name"], each.get("version", "")): each["state"] for each in entries}


def test_a_version_is_named_or_the_latest_runs(client, module):
    assert answer(client, module) == (2, "2")
    assert answer(client, module, "1") == (1, "1")
    assert client.is_model_ready("added", "1")
    assert not client.is_model_ready("added", "3")
    with pytest.raises(InferenceServerException, match="version 3 is not found"):
        answer(client, module, "3")


def test_metadata_and_configuration_are_those_of_the_config(client):
    said = as_json(client.get_model_metadata("added", "1"))
    assert said["versions"] == ["1", "2"]
    assert said["platform"] == "onnxruntime_onnx"
    assert [str(each) for each in said["inputs"][0]["shape"]] == ["-1", "4"]
    said = as_json(client.get_model_config("added"))
    said = said.get("config", said)
    assert said["max_batch_size"] == 8
    assert [str(each) for each in said["input"][0]["dims"]] == ["4"]
    assert said["version_policy"] == {"all": {}}


def test_a_batch_may_be_as_large_as_the_config_says(client, module):
    assert answer(client, module, count=8) == (2, "2")
    with pytest.raises(InferenceServerException, match="batch-size must be <= 8 for 'added'"):
        answer(client, module, count=9)
    with pytest.raises(InferenceServerException, match=r"Expected \[-1,4\], got \[1,5\]"):
        client.infer("added", rows(module, columns=5))


def test_models_are_loaded_and_unloaded_by_name(client, module):
    states = [state for (name, _), state in index(client).items() if name == "other"]
    assert states == ["UNAVAILABLE"]
    with pytest.raises(InferenceServerException, match="not ready"):
        client.infer("other", rows(module))
    client.load_model("other")
    assert index(client)["other", "3"] == "READY"
    assert client.infer("other", rows(module)).as_numpy("y")[0, 0] == 3
    client.unload_model("other", unload_dependents=True)
    assert not client.is_model_ready("other")
    with pytest.raises(InferenceServerException, match="failed to poll from model repository"):
        client.load_model("none")


def test_a_load_may_bring_a_configuration(client, module):
    one = {"version_policy": {"specific": {"versions": [1]}}, "max_batch_size": 2}
    client.load_model("added", config=json.dumps(one))
    assert answer(client, module) == (1, "1")
    with pytest.raises(InferenceServerException, match="batch-size must be <= 2"):
        answer(client, module, count=3)
    for wrong, match in (
        ('{"sequence_batching": {}}', "`sequence_batching`.*not supported"),
        ('{"max_batch": 1}', "unknown field `max_batch`"),
        ('{"input": [{"name": "a", "dims": [4]}]}', "input `a` is not in the model"),
        ("no JSON", "not JSON"),
    ):
        with pytest.raises(InferenceServerException, match=match):
            client.load_model("added", config=wrong)
        assert answer(client, module) == (1, "1")
    with pytest.raises(InferenceServerException, match="files in a call"):
        client.load_model("added", config="{}", files={"file:1/model.onnx": b"bytes"})
    client.load_model("added")
    assert answer(client, module) == (2, "2")


def test_statistics_are_kept_by_version(client, module):
    def counts():
        said = as_json(client.get_inference_statistics("added"))["model_stats"]
        return {
            each["version"]: int(each["inference_stats"]["success"].get("count", 0))
            for each in said
        }

    before = counts()
    answer(client, module, "1")
    assert counts() == before | {"1": before["1"] + 1}


def test_streams_name_versions_too(server):
    answers = queue.Queue()
    with connected(server, grpc) as client:
        client.start_stream(lambda result, error: answers.put(error or result))
        for version in ("1", "", "2"):
            client.async_stream_infer("added", rows(grpc), model_version=version)
        found = [answers.get(timeout=PATIENCE_S) for _ in range(3)]
        client.stop_stream()
    assert [each.as_numpy("y")[0, 0] for each in found] == [1, 2, 2]
    assert [each.get_response().model_version for each in found] == ["1", "2", "2"]


def test_asynchronous_clients_manage_the_repository(server):
    async def run(module, address):
        async with module.InferenceServerClient(address) as client:
            await client.load_model("other")
            assert await client.is_model_ready("other", "3")
            found = await client.infer("added", rows(module), model_version="1")
            assert found.as_numpy("y")[0, 0] == 1
            await client.unload_model("other")
            assert not await client.is_model_ready("other")

    asyncio.run(run(http_aio, server.http))
    asyncio.run(run(grpc_aio, server.grpc))


def test_a_latest_version_that_comes_later_is_used_by_requests_in_regions(server, repository):
    """Requests come often enough for the native core to answer them."""
    key = f"/oip_{uuid.uuid4().hex}"
    region = shared_memory.create_shared_memory_region("r", key, 32)
    shared_memory.set_shared_memory_region(region, [np.zeros(4, np.float32)])
    given = http.InferInput("x", [1, 4], "FP32")
    given.set_shared_memory("r", 16)
    taken = http.InferRequestedOutput("y")
    taken.set_shared_memory("r", 16, 16)
    try:
        with connected(server, http) as client, connected(server, http) as other:
            client.register_system_shared_memory("r", key, 32)

            def ask(count):
                for _ in range(count):
                    client.infer("added", [given], outputs=[taken])
                return shared_memory.get_contents_as_numpy(region, np.float32, [4], 16)[0]

            assert ask(200) == 2
            write_version(repository / "added", 5)
            other.load_model("added")
            assert ask(200) == 5
            shutil.rmtree(repository / "added" / "5")
            other.load_model("added")
            assert ask(200) == 2
            client.unregister_system_shared_memory()
    finally:
        shared_memory.destroy_shared_memory_region(region)


def test_no_request_fails_while_versions_come_and_go(server, repository):
    enough, folder = threading.Event(), repository / "added"

    def ask(module, version):
        count = 0
        with connected(server, module) as client:
            while not enough.is_set():
                number, said = answer(client, module, version)
                assert said == (version or said)
                assert number in {int(said), 50}
                count += 1
        return count

    with ThreadPoolExecutor(4) as clients, connected(server, http) as client:
        asking = [clients.submit(ask, *of) for of in ((http, ""), (grpc, ""), (http, "1"))]
        try:
            for _ in range(3):
                write_version(folder, 3)
                client.load_model("added")
                write_version(folder, 1, 50)
                client.load_model("added")
                (folder / "3" / "model.onnx").write_bytes(b"no model")
                with pytest.raises(InferenceServerException, match="version 3: "):
                    client.load_model("added")
                shutil.rmtree(folder / "3")
                write_version(folder, 1)
                client.load_model("added")
        finally:
            enough.set()
        assert all(each.result(PATIENCE_S) > 10 for each in asking)


def in_message(module, client, rows):
    """The answer to rows that are sent, and come back, in messages."""
    given = module.InferInput("x", [1, 4], "FP32")
    given.set_data_from_numpy(rows)
    return client.infer("joined", [given]).as_numpy("y")


def in_region(module, client, rows, region, name):
    """The answer to rows that lie in a region, as the answer does."""
    given, taken = module.InferInput("x", [1, 4], "FP32"), module.InferRequestedOutput("y")
    shared_memory.set_shared_memory_region(region, [rows])
    given.set_shared_memory(name, 16)
    taken.set_shared_memory(name, 16, 16)
    client.infer("joined", [given], outputs=[taken])
    return shared_memory.get_contents_as_numpy(region, np.float32, [1, 4], 16)


def test_joined_requests_of_all_clients_get_their_own_rows(server):
    names = [f"oip_{uuid.uuid4().hex}" for _ in range(2)]
    regions = [shared_memory.create_shared_memory_region(name, f"/{name}", 64) for name in names]

    def ask(number):
        module = http if number % 2 else grpc
        with connected(server, module) as client:
            for step in range(20):
                rows = np.full((1, 4), 100 * number + step, np.float32)
                where = [(regions[number], names[number])] if number < len(names) else []
                answer = in_region if where else in_message
                found = answer(module, client, rows, *(where[0] if where else ()))
                assert np.array_equal(found, rows + 1)

    try:
        with connected(server, http) as client, ThreadPoolExecutor(6) as clients:
            client.load_model("joined")
            for name in names:
                client.register_system_shared_memory(name, f"/{name}", 64)
            list(clients.map(ask, range(6)))
            client.unregister_system_shared_memory()
            (said,) = client.get_inference_statistics("joined")["model_stats"]
            assert said["inference_count"] == 120 >= said["execution_count"]
    finally:
        for each in regions:
            shared_memory.destroy_shared_memory_region(each)


def until(is_so):
    end = time.monotonic() + PATIENCE_S
    while not is_so() and time.monotonic() < end:
        time.sleep(0.05)
    assert is_so()


def test_polling_serves_what_the_files_are_and_names_what_is_broken(tmp_path):
    write_model(tmp_path, "added", (1,))
    write_model(tmp_path, "sequence", more="sequence_batching {}")
    mode = ("--model-control-mode", "poll", "--repository-poll-secs", "0.1")
    with serve("--model-repository", tmp_path, *mode) as server, connected(server, http) as client:
        said = {each["name"]: each for each in client.get_model_repository_index()}
        assert "`sequence_batching`" in said["sequence"]["reason"]
        assert "`sequence_batching`" in server.log
        for change in (client.load_model, client.unload_model):
            with pytest.raises(InferenceServerException, match="load / unload is not allowed"):
                change("added")
        write_version(tmp_path / "added", 2)
        until(lambda: client.is_model_ready("added", "2"))
        assert not client.is_model_ready("added", "1")
        write_model(tmp_path, "later", (1,))
        until(lambda: client.is_model_ready("later"))
        write_model(tmp_path, "added", (), "ensemble_scheduling {}")
        until(lambda: "ensemble_scheduling" in server.log)
        assert answer(client, http) == (2, "2")
        shutil.rmtree(tmp_path / "later")
        until(lambda: not client.is_model_ready("later"))
