"""A server of models that leave lengths open, and of files that are not models, from outside."""

import os
import subprocess

import numpy as np
import onnx
import pytest

pytest.importorskip("uvicorn")
grpc = pytest.importorskip("tritonclient.grpc")
from tests.driver.oip.serve_process import COMMAND, serve  # noqa: E402
from tests.models import parse  # noqa: E402
from tightship.driver.client.client import Client  # noqa: E402

KERNEL = ", ".join(["1"] * 9)
TEXTS = {
    "rows": "m (float[n,4] x) => (float[n,4] y) { y = Relu(x) }",
    "square": "m (float[n,n] x) => (float[n,n] y) { y = Relu(x) }",
    "pixels": f"m (float[n,1,h,w] x) => (float[n,1,p,q] y) <float[1,1,3,3] k = {{{KERNEL}}}>"
    "{ y = Conv(x, k) }",
    "thirds": "m (float[n] x) => (float[a,b] y) <int64[2] s = {-1, 3}> { y = Reshape(x, s) }",
    "words": "m (string[n] x) => (string[n] y) { y = Identity(x) }",
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("open")
    for name, text in TEXTS.items():
        onnx.save(parse(text), folder / f"{name}.onnx")
    (folder / "broken.onnx").write_bytes(b"not a model")
    any_rank = onnx.helper.make_tensor_value_info
    graph = onnx.helper.make_graph(
        [onnx.helper.make_node("Relu", ["x"], ["y"])],
        "any",
        [any_rank("x", 1, None)],
        [any_rank("y", 1, None)],
    )
    onnx.save(onnx.helper.make_model(graph, ir_version=8), folder / "any.onnx")
    return folder


@pytest.fixture(scope="module")
def server(folder):
    with serve(folder) as server:
        yield server


def run(server, name, array):
    tensor = {"name": "x", "shape": array.shape, "datatype": "FP32", "data": array.ravel().tolist()}
    status, said = server.post(f"/v2/models/{name}/infer", {"inputs": [tensor]})
    assert status == 200, said
    (output,) = said["outputs"]
    return np.array(output["data"], np.float32).reshape(output["shape"])


def test_metadata_says_which_lengths_are_open(server):
    shapes = {}
    for name in (*TEXTS, "any"):
        status, said = server.get(f"/v2/models/{name}")
        assert status == 200
        shapes[name] = said["inputs"][0]["shape"]
    assert shapes == {
        "rows": [-1, 4],
        "square": [-1, -1],
        "pixels": [-1, 1, -1, -1],
        "thirds": [-1],
        "words": [-1],
        "any": [-1],
    }


@pytest.mark.parametrize(
    ("name", "shapes"),
    [
        ("rows", [(1, 4), (3, 4), (0, 4), (200, 4)]),
        ("square", [(2, 2), (5, 5)]),
        ("any", [(), (3,), (2, 3), (1, 2, 1, 2, 1)]),
    ],
)
def test_a_request_may_have_any_length_over_http_and_grpc(server, name, shapes):
    for shape in shapes:
        array = np.arange(np.prod(shape, dtype=int), dtype=np.float32).reshape(shape) - 2
        assert np.array_equal(run(server, name, array), np.maximum(array, 0))
        with grpc.InferenceServerClient(server.grpc) as client:
            given = grpc.InferInput("x", list(shape), "FP32")
            given.set_data_from_numpy(np.asarray(array))
            result = client.infer(name, [given]).as_numpy("y")
            assert np.array_equal(result, np.maximum(array, 0))


def test_outputs_have_the_lengths_that_follow(server):
    for height, width in ((3, 3), (5, 9)):
        result = run(server, "pixels", np.ones((2, 1, height, width), np.float32))
        assert np.array_equal(result, np.full((2, 1, height - 2, width - 2), 9, np.float32))
    assert run(server, "thirds", np.arange(12, dtype=np.float32)).shape == (4, 3)


def test_clients_of_the_socket_may_have_any_length_too(server):
    with Client(server.socket) as client:
        rows = client.prepare_named("rows")
        for count in (2, 7):
            array = np.full((count, 4), -1, np.float32)
            assert np.array_equal(rows.execute([array])[0], np.zeros((count, 4)))


def test_a_model_of_open_lengths_may_come_later_and_be_loaded_anew(server, folder):
    onnx.save(parse(TEXTS["rows"].replace("Relu", "Neg")), folder / "later.onnx")
    for _ in range(2):
        assert server.post("/v2/repository/models/later/load", {}) == (200, None)
        array = np.ones((3, 4), np.float32)
        assert np.array_equal(run(server, "later", array), -array)


def index(server):
    return {each.pop("name"): each for each in server.post("/v2/repository/index", {})[1]}


def test_a_file_that_is_not_a_model_keeps_no_other_from_being_served(server, folder):
    state = index(server)["broken"]
    assert state["state"] == "UNAVAILABLE"
    assert "is not an ONNX model" in state["reason"]
    assert index(server)["rows"]["state"] == "READY"
    assert server.get("/v2/health/ready") == (200, {"ready": True})
    assert server.get("/v2/models/broken/ready")[0] == 400
    assert "failed to load 'broken'" in server.log
    onnx.save(parse(TEXTS["rows"]), folder / "broken.onnx")
    assert server.post("/v2/repository/models/broken/load", {}) == (200, None)
    assert index(server)["broken"] == {"version": "1", "state": "READY"}


def test_a_server_ends_where_it_can_serve_nothing(tmp_path):
    (tmp_path / "a.onnx").write_bytes(b"not a model")
    (tmp_path / "b.onnx").write_bytes(b"")
    command = [*COMMAND, tmp_path, "--socket", tmp_path / "socket", "--http", "0"]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert ended.returncode == 2
    assert len(ended.stderr.splitlines()) == 2
    for name in ("a", "b"):
        assert f"failed to load '{name}'" in ended.stderr
    assert not os.path.exists(tmp_path / "socket")
