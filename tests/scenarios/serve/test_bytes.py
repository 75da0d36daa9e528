"""Elements of BYTES that are not UTF-8, there and back by every way that a tensor has."""

import json
import struct
from contextlib import contextmanager
from multiprocessing.shared_memory import SharedMemory

import numpy as np
import onnx
import pytest

pytest.importorskip("uvicorn")
http = pytest.importorskip("tritonclient.http")
grpc = pytest.importorskip("tritonclient.grpc")
from tests.driver.oip.serve_process import serve  # noqa: E402
from tests.models import parse  # noqa: E402

ELEMENTS = [b"\xff\xd8\xff\xe0\0\x10JFIF\0", bytes(range(256)), b"", b"\xc3", b"a\0\0", b"text"]
TEXTS = {
    "same": "m (string[n] x) => (string[n] y) { y = Identity(x) }",
    "twice": "m (string[n] x) => (string[n] y) { y = StringConcat(x, x) }",
    "marked": 'm (string[n] x) => (string[n] y) <string[1] k = {"!"}> { y = StringConcat(x, k) }',
}
RESULTS = {"same": lambda e: e, "twice": lambda e: 2 * e, "marked": lambda e: e + b"!"}
X = np.array([*ELEMENTS, None], object)[:-1]


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    folder = tmp_path_factory.mktemp("bytes")
    for name, text in TEXTS.items():
        onnx.save(parse(text), folder / f"{name}.onnx")
    with serve(folder, "--allow-client-shm") as server:
        yield server


def wanted(model, elements=ELEMENTS):
    return list(map(RESULTS[model], elements))


def raw(elements):
    return b"".join(struct.pack("<I", len(each)) + each for each in elements)


@pytest.mark.parametrize("model", TEXTS)
@pytest.mark.parametrize("module", [http, grpc], ids=["http", "grpc"])
def test_any_bytes_are_sent_and_answered_as_binary_data(server, module, model):
    place = server.http if module is http else server.grpc
    given = module.InferInput("x", [len(X)], "BYTES")
    given.set_data_from_numpy(X)
    with module.InferenceServerClient(place) as client:
        assert client.infer(model, [given]).as_numpy("y").tolist() == wanted(model)


@pytest.mark.parametrize("model", TEXTS)
def test_any_bytes_are_sent_in_the_contents_of_a_message(server, model):
    from tritonclient.grpc import service_pb2, service_pb2_grpc

    transport = pytest.importorskip("grpc")
    request = service_pb2.ModelInferRequest(model_name=model)
    tensor = request.inputs.add(name="x", datatype="BYTES", shape=[len(ELEMENTS)])
    tensor.contents.bytes_contents.extend(ELEMENTS)
    with transport.insecure_channel(server.grpc) as channel:
        stub = service_pb2_grpc.GRPCInferenceServiceStub(channel)
        assert stub.ModelInfer(request).raw_output_contents[0] == raw(wanted(model))


@contextmanager
def region(client, name):
    memory = SharedMemory(create=True, size=4096)
    try:
        client.register_system_shared_memory(name, f"/{memory.name}", 4096)
        yield memory
        client.unregister_system_shared_memory(name)
    finally:
        memory.close()
        memory.unlink()


@pytest.mark.parametrize("model", TEXTS)
@pytest.mark.parametrize("module", [http, grpc], ids=["http", "grpc"])
def test_any_bytes_are_sent_and_answered_in_shared_memory(server, module, model):
    place = server.http if module is http else server.grpc
    content, expected = raw(ELEMENTS), raw(wanted(model))
    with (
        module.InferenceServerClient(place) as client,
        region(client, "given") as given,
        region(client, "taken") as taken,
    ):
        given.buf[: len(content)] = content
        x, y = module.InferInput("x", [len(X)], "BYTES"), module.InferRequestedOutput("y")
        x.set_shared_memory("given", len(content))
        y.set_shared_memory("taken", 4096)
        for _ in range(3):  # the same again, which may be answered another way
            taken.buf[: len(expected)] = bytes(len(expected))
            client.infer(model, [x], outputs=[y])
            assert bytes(taken.buf[: len(expected)]) == expected


def test_json_holds_what_is_utf8(server):
    def infer(elements, **output):
        tensor = {"name": "x", "shape": [len(elements)], "datatype": "BYTES", "data": elements}
        said = {"inputs": [tensor], "outputs": [{"name": "y", "parameters": output}]}
        return server.ask("POST", "/v2/models/marked/infer", json.dumps(said))

    texts = ["", "\0", "é", "\U0001f680", "a\nb"]
    status, _, body = infer(texts)
    assert (status, json.loads(body)["outputs"][0]["data"]) == (200, [f"{t}!" for t in texts])
    status, headers, body = infer(texts, binary_data=True)
    split = int(headers["Inference-Header-Content-Length"])
    assert body[split:] == raw(f"{text}!".encode() for text in texts)
    status, _, body = infer(["\udcff"])  # not a letter: half of a pair
    assert (status, b"not BYTES" in body) == (400, True)


def test_json_that_cannot_hold_an_output_is_refused_with_what_can(server):
    given = http.InferInput("x", [1], "BYTES")
    given.set_data_from_numpy(np.array([b"\xff"], object))
    with http.InferenceServerClient(server.http) as client:
        wish = http.InferRequestedOutput("y", binary_data=False)
        with pytest.raises(http.InferenceServerException, match=r"not UTF-8.*binary_data"):
            client.infer("same", [given], outputs=[wish])
        wish = http.InferRequestedOutput("y", binary_data=True)
        result = client.infer("same", [given], outputs=[wish])
        assert result.as_numpy("y").tolist() == [b"\xff"]
