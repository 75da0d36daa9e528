"""Health over HTTP and gRPC, and how a server ends, asked from outside its process."""

import shutil
import signal
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

import onnx
import pytest

pytest.importorskip("uvicorn")
grpc = pytest.importorskip("grpc")
from tests.driver.oip.serve_process import serve  # noqa: E402
from tests.driver.oip.served import SIDE, SLOW  # noqa: E402
from tests.models import parse  # noqa: E402

SERVING, NOT_SERVING, SERVICE_UNKNOWN = (bytes([8, status]) for status in (1, 2, 3))
RELU = "m (float[1,2] x) => (float[1,2] y) { y = Relu(x) }"
X = {"name": "x", "shape": [1, 2], "datatype": "FP32", "data": [-1, 2]}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("health")
    onnx.save(parse(RELU), folder / "relu.onnx")
    return folder


@pytest.fixture(scope="module")
def server(folder):
    with serve(folder, "--host-name", "Models.example.com", "--host-name", "b") as server:
        yield server


def test_health_is_said_in_bodies(server):
    assert server.get("/v2/health/live") == (200, {"live": True})
    assert server.get("/v2/health/ready") == (200, {"ready": True})
    assert server.get("/v2/models/relu/ready") == (200, {"name": "relu", "ready": True})
    said = {"name": "relu", "ready": True}
    assert server.get("/v2/models/relu/versions/1/ready") == (200, said)
    assert server.get("/v2/models/relu/versions/2/ready") == (400, said | {"ready": False})
    assert server.get("/v2/models/other/ready") == (400, {"name": "other", "ready": False})
    status, headers, body = server.ask("HEAD", "/v2/health/ready")
    assert (status, int(headers["Content-Length"]), body) == (200, len('{"ready": true}'), b"")


@pytest.mark.parametrize(
    ("target", "allowed"),
    [
        ("/", "GET, HEAD"),
        ("/v2", "GET, HEAD"),
        ("/v2/health/ready?x=1", "GET, HEAD"),
        ("/v2/models/relu", "GET, HEAD"),
        ("/v2/models/stats", "GET, HEAD"),
        ("/v2/models/relu/infer", "POST"),
        ("/v2/models/relu/versions/1/infer", "POST"),
        ("/v2/repository/index", "POST"),
        ("/v2/repository/models/relu/load", "POST"),
        ("/v2/systemsharedmemory/status", "GET, HEAD"),
        ("/v2/systemsharedmemory/region/r/register", "POST"),
        ("/v2/cudasharedmemory/unregister", "POST"),
        ("/v2/logging", "GET, HEAD, POST"),
        ("/v2/trace/setting", "GET, HEAD, POST"),
    ],
)
def test_a_method_that_a_path_does_not_have_is_405(server, target, allowed):
    for method in {"PUT", "DELETE", "GET", "HEAD", "POST"} - set(allowed.split(", ")):
        status, headers, body = server.ask(method, target)
        assert (method, status, headers["Allow"]) == (method, 405, allowed)
        assert body == b"" if method == "HEAD" else allowed.encode() in body


@pytest.mark.parametrize("target", ["/nothing", "/v2/models", "/v2/models/relu/nothing", "/v2/x"])
def test_a_path_that_there_is_not_is_404_by_any_method(server, target):
    for method in ("GET", "HEAD", "PUT", "POST"):
        status, headers, _ = server.ask(method, target)
        assert (status, headers["Allow"]) == (404, None)


def test_a_server_at_loopback_has_the_names_that_it_is_given(server):
    for host in ("models.example.com", "MODELS.example.com:443", "b", "localhost"):
        assert server.ask("GET", "/v2", Host=host)[0] == 200
    status, _, body = server.ask("GET", "/v2", Host="other.example.com")
    assert status == 403
    assert b"--host-name" in body
    assert server.ask("GET", "/v2", Origin="https://models.example.com")[0] == 200
    assert server.ask("GET", "/v2", Origin="https://other.example.com")[0] == 403


def asked(service):
    return b"\x0a" + bytes([len(service)]) + service.encode() if service else b""


def check(channel, service=""):
    return channel.unary_unary("/grpc.health.v1.Health/Check")(asked(service), timeout=60)


def watch(channel, service=""):
    return channel.unary_stream("/grpc.health.v1.Health/Watch")(asked(service), timeout=60)


def refusal(call):
    with pytest.raises(grpc.RpcError) as caught:
        call()
    return caught.value.code()


def test_the_health_service_of_grpc_knows_the_server_and_each_model(server):
    with grpc.insecure_channel(server.grpc) as channel:
        for service in ("", "inference.GRPCInferenceService", "relu"):
            assert check(channel, service) == SERVING
        assert refusal(lambda: check(channel, "other")) is grpc.StatusCode.NOT_FOUND
        garbage = channel.unary_unary("/grpc.health.v1.Health/Check")
        assert refusal(lambda: garbage(b"\xff")) is grpc.StatusCode.INVALID_ARGUMENT
        assert server.post("/v2/repository/models/relu/unload", {}) == (200, None)
        assert check(channel, "relu") == NOT_SERVING
        assert check(channel) == SERVING
        assert server.post("/v2/repository/models/relu/load", {}) == (200, None)
        assert check(channel, "relu") == SERVING


def test_the_health_service_of_grpc_lists_the_server_and_each_model(server):
    with grpc.insecure_channel(server.grpc) as channel:
        server.post("/v2/repository/models/relu/unload", {})
        said = channel.unary_unary("/grpc.health.v1.Health/List")(b"", timeout=60)
        server.post("/v2/repository/models/relu/load", {})
        garbage = channel.unary_unary("/grpc.health.v1.Health/List")
        assert refusal(lambda: garbage(b"\xff")) is grpc.StatusCode.INVALID_ARGUMENT
    services = {"": SERVING, "inference.GRPCInferenceService": SERVING, "relu": NOT_SERVING}
    assert sorted(entries(said)) == sorted(services.items())


def entries(data):
    """Names and statuses in a `HealthListResponse`: each entry is two strings of bytes."""
    while data:
        assert data[0] == 0x0A
        entry, data = data[2 : 2 + data[1]], data[2 + data[1] :]
        assert entry[0] == 0x0A
        name, rest = entry[2 : 2 + entry[1]], entry[2 + entry[1] :]
        assert rest[0] == 0x12
        yield name.decode(), rest[2:]


def test_a_watcher_of_a_model_is_notified_of_its_changes(server, folder):
    with grpc.insecure_channel(server.grpc) as channel:
        later, relu = watch(channel, "later"), watch(channel, "relu")
        assert (next(later), next(relu)) == (SERVICE_UNKNOWN, SERVING)
        server.post("/v2/repository/models/relu/unload", {})
        assert next(relu) == NOT_SERVING
        shutil.copy(folder / "relu.onnx", folder / "later.onnx")
        for name in ("later", "relu"):
            assert server.post(f"/v2/repository/models/{name}/load", {}) == (200, None)
        assert next(relu) == SERVING
        while (status := next(later)) != SERVING:  # it is known before it is loaded
            assert status == NOT_SERVING


def test_those_who_watch_leave_threads_to_others(folder):
    options = ("--max-connections", "4")
    with serve(folder, *options) as server, grpc.insecure_channel(server.grpc) as channel:
        first = watch(channel)
        assert next(first) == SERVING
        second = watch(channel)
        assert refusal(lambda: next(second)) is grpc.StatusCode.RESOURCE_EXHAUSTED
        assert check(channel) == SERVING
        first.cancel()
        while is_refused(third := watch(channel)):
            pass  # the server has yet to hear that the first is gone
        third.cancel()


def is_refused(call):
    with suppress(grpc.RpcError):
        return next(call) != SERVING
    return True


def infer(server, name, tensor):
    return server.post(f"/v2/models/{name}/infer", {"inputs": [tensor]})


def test_a_server_that_is_ended_is_not_ready_and_answers_for_its_time_of_grace(folder):
    with serve(folder, "--grace", "600") as server, grpc.insecure_channel(server.grpc) as channel:
        watcher = watch(channel)
        assert next(watcher) == SERVING
        server.process.send_signal(signal.SIGTERM)
        assert next(watcher) == NOT_SERVING
        assert server.get("/v2/health/ready") == (400, {"ready": False})
        assert server.get("/v2/health/live") == (200, {"live": True})
        assert server.get("/v2/models/relu/ready") == (400, {"name": "relu", "ready": False})
        assert check(channel, "relu") == NOT_SERVING
        status, said = infer(server, "relu", X)
        assert (status, said["outputs"][0]["data"]) == (200, [0, 2])
        server.process.send_signal(signal.SIGTERM)  # again: the time of grace is over
        assert refusal(lambda: next(watcher)) is grpc.StatusCode.UNAVAILABLE
        assert server.process.wait(60) == 0
        with pytest.raises(ConnectionRefusedError):
            server.get("/v2/health/ready")


@pytest.mark.parametrize("signals", [[signal.SIGINT], [signal.SIGTERM] * 5])
def test_requests_that_have_begun_are_answered_before_the_end(tmp_path, signals):
    """One runs and one waits for it when the server is asked to end."""
    onnx.save(parse(SLOW), tmp_path / "slow.onnx")
    x = {"name": "x", "shape": [SIDE, SIDE], "datatype": "FP32", "data": [0] * SIDE**2}
    with serve(tmp_path, "--grace", "0") as server, ThreadPoolExecutor(2) as clients:
        asked = [clients.submit(infer, server, "slow", x) for _ in range(2)]
        while not (any(each.done() for each in asked) or is_waited_for(server)):
            pass
        for number in signals:
            server.process.send_signal(number)
        assert server.process.wait(60) == 0
        assert [each.result()[0] for each in asked] == [200, 200]


def is_waited_for(server):
    line = 'nv_inference_pending_request_count{model="slow",version="1",face="protocol"} 1'
    return line in server.ask("GET", "/metrics")[2].decode().splitlines()
