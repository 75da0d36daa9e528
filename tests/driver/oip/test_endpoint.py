"""Calls answered in process, without a socket."""

import json
import struct
from time import monotonic_ns

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.driver.oip.served import sources
from tightship._core import RunPermits
from tightship.driver.oip.endpoint import InferenceEndpoint
from tightship.driver.oip.http.calls import HttpCalls
from tightship.driver.oip.http.message import HEADER_LENGTH, HttpRequest
from tightship.driver.oip.model_source import ModelSource
from tightship.driver.oip.refusal import OipError
from tightship.driver.oip.region_files import RegionFiles
from tightship.driver.oip.repository import Repository


@pytest.fixture(scope="module")
def repository(tmp_path_factory):
    known = sources(tmp_path_factory.mktemp("models"))
    found = Repository(lambda: {name: known[name] for name in ("simple", "identity_BYTES", "open")})
    for name in found.names:
        found.load(name)
    yield found
    found.close()


@pytest.fixture(scope="module")
def endpoint(repository):
    return calls(repository)[1]


def calls(repository):
    found = InferenceEndpoint(repository, RegionFiles(is_enabled=False), RunPermits(2))
    return found, HttpCalls(found, 1 << 20)


def ask(endpoint, target, body=b"", method="POST", **headers):
    response = endpoint.respond(HttpRequest(method, target, headers, body))
    whole = b"".join(response.parts)
    return response.status, json.loads(whole[: response.header_bytes] or b"null"), response


def ones(**changes):
    tensor = {"datatype": "INT32", "shape": [1, 16], "data": [1] * 16} | changes
    return {"name": "INPUT0", **tensor}, {"name": "INPUT1", **tensor}


def infer(endpoint, *inputs, model="simple", **fields):
    return ask(
        endpoint, f"/v2/models/{model}/infer", json.dumps({"inputs": inputs, **fields}).encode()
    )


def test_a_request_of_json_is_answered_in_json(endpoint):
    status, said, response = infer(endpoint, *ones(), id="7")
    assert status == 200
    assert said["id"] == "7"
    assert said["outputs"][0] == {
        "name": "OUTPUT0",
        "datatype": "INT32",
        "shape": [1, 16],
        "data": [2] * 16,
    }
    assert response.header_bytes is None


def test_elements_that_are_no_numbers_are_said_as_triton_says_them(endpoint):
    tensor = (
        '{"name": "x", "datatype": "FP32", "shape": [1, 4], "data": [NaN, Infinity, -1e999, 0]}'
    )
    target = "/v2/models/open/infer"
    response = endpoint.respond(
        HttpRequest("POST", target, {}, f'{{"inputs": [{tensor}]}}'.encode())
    )
    assert b'"data": [NaN, Infinity, 0.0, 0.0]' in response.parts[0]


def test_nested_data_is_taken(endpoint):
    assert infer(endpoint, *ones(data=[[1] * 16]))[1]["outputs"][0]["data"] == [2] * 16


def test_raw_bytes_follow_the_header_in_the_order_of_the_inputs(endpoint):
    first, second = ones(data=None, parameters={"binary_data_size": 64})
    fields = {"inputs": [first, second], "parameters": {"binary_data_output": True}}
    header = json.dumps(fields).encode()
    raw = np.arange(16, dtype="<i4").tobytes() + np.ones(16, "<i4").tobytes()
    target, headers = "/v2/models/simple/infer", {HEADER_LENGTH: str(len(header))}
    response = endpoint.respond(HttpRequest("POST", target, headers, header + raw))
    sums, differences = response.parts[1:]
    assert np.array_equal(np.frombuffer(sums, "<i4"), np.arange(16) + 1)
    assert np.array_equal(np.frombuffer(differences, "<i4"), np.arange(16) - 1)
    assert response.header_bytes == len(response.parts[0])
    assert b"Inference-Header-Content-Length: " in response.head
    more = endpoint.respond(HttpRequest("POST", target, headers, header + raw + b"x"))
    assert more.status == 400


@pytest.mark.parametrize(
    ("changes", "match"),
    [
        ({"data": [1] * 15}, "Shape does not match"),
        ({"data": [1.5] * 16}, "not INT32"),
        ({"data": [True] * 16}, "not INT32"),
        ({"data": [2**31] * 16}, "cannot hold"),
        ({"data": [[[1] * 16]]}, "Shape does not match"),
        ({"data": None}, "must set only one of the following fields"),
        ({"parameters": {"binary_data_size": 64}}, "must set only one of the following fields"),
        ({"data": None, "parameters": {"binary_data_size": 64}}, "the body has 0 bytes for it"),
        ({"data": None, "parameters": {"binary_data_size": -1}}, "the body has 0 bytes for it"),
        ({"shape": [1, -16]}, "Unable to parse 'shape'"),
        ({"shape": [1, 16.0]}, "Unable to parse 'shape'"),
        ({"shape": [1] * 33}, "Unable to parse 'shape'"),
        ({"shape": [2**62, 2**62]}, "too large"),
        ({"shape": [16, 1]}, "unexpected shape"),
        ({"datatype": "INT7"}, "unknown data-type 'INT7'"),
        ({"data": None, "parameters": {"shared_memory_region": "r"}}, "shared_memory_byte_size"),
        (
            {
                "data": None,
                "parameters": {"shared_memory_region": "r", "shared_memory_byte_size": 64},
            },
            "Unable to find shared memory region: 'r'",
        ),
    ],
)
def test_a_tensor_that_does_not_fit_is_refused(endpoint, changes, match):
    status, said, _ = infer(endpoint, *ones(**changes))
    assert status in {400, 404}
    assert match in said["error"]


@pytest.mark.parametrize(
    ("outputs", "match"),
    [
        ([{"name": "OUTPUT0", "parameters": {"classification": 3}}], "classification"),
        ([{"name": "OUTPUT0"}, {"name": "OUTPUT0"}], "more than once"),
        ([{}], "Unable to parse 'name'"),
        ([1], "list of objects"),
        (
            [
                {
                    "name": "OUTPUT0",
                    "parameters": {
                        "binary_data": True,
                        "shared_memory_region": "r",
                        "shared_memory_byte_size": 64,
                    },
                }
            ],
            "cannot set both",
        ),
    ],
)
def test_an_output_that_cannot_be_had_is_refused(endpoint, outputs, match):
    status, said, _ = infer(endpoint, *ones(), outputs=outputs)
    assert status == 400
    assert match in said["error"]


@pytest.mark.parametrize(
    "raw", [b"\x01", struct.pack("<I", 5) + b"four", b"\xff" * 4, struct.pack("<I", 1) + b"\xff"]
)
def test_damaged_strings_are_refused(endpoint, raw):
    tensor = {"name": "x", "datatype": "BYTES", "shape": [2, 3]}
    tensor["parameters"] = {"binary_data_size": len(raw)}
    header = json.dumps({"inputs": [tensor]}).encode()
    headers = {HEADER_LENGTH: str(len(header))}
    request = HttpRequest("POST", "/v2/models/identity_BYTES/infer", headers, header + raw)
    assert endpoint.respond(request).status == 400


def test_a_run_that_is_late_is_ended(endpoint):
    status, said, _ = infer(endpoint, *ones(), parameters={"timeout": 1})
    assert (status, said) == (503, {"error": "Request timeout expired"})


@pytest.mark.parametrize("body", [b"[]", b"{", b"[" * 100_000, b'{"inputs": 1}', b"\xff", b""])
def test_bodies_that_are_no_request_are_refused(endpoint, body):
    assert ask(endpoint, "/v2/models/simple/infer", body)[0] == 400


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner),
    max_leaves=5,
)
TENSOR = st.fixed_dictionaries(
    {},
    optional={
        "name": st.sampled_from(["INPUT0", "INPUT1", "x"]) | JSON,
        "datatype": st.sampled_from(["INT32", "BYTES", "FP16"]) | JSON,
        "shape": st.lists(st.integers(-1, 16), max_size=3) | JSON,
        "data": JSON,
        "parameters": st.dictionaries(
            st.sampled_from(["binary_data_size", "shared_memory_region", "binary_data"]), JSON
        ),
    },
)


@given(st.lists(TENSOR, max_size=2), st.lists(TENSOR, max_size=2), JSON, st.binary(max_size=8))
def test_whatever_comes_is_answered(endpoint, inputs, outputs, parameters, raw):
    fields = {"inputs": inputs, "outputs": outputs, "parameters": parameters}
    header = json.dumps(fields).encode()
    for model in ("simple", "identity_BYTES", "open"):
        headers = {HEADER_LENGTH: str(len(header))}
        request = HttpRequest("POST", f"/v2/models/{model}/infer", headers, header + raw)
        assert endpoint.respond(request).status in {400, 404}


def test_a_server_that_ends_is_not_ready(repository):
    endpoint, http = calls(repository)
    assert ask(http, "/v2/health/ready", method="GET")[0] == 200
    endpoint.drain()
    assert ask(http, "/v2/health/ready", method="GET")[0] == 400
    assert ask(http, "/v2/health/live", method="GET")[0] == 200


def test_the_time_of_a_request_counts_from_when_it_came(repository, endpoint):
    def ask_late(**fields):
        body = json.dumps({"inputs": ones(), **fields}).encode()
        came_ns = monotonic_ns() - 10**9
        return endpoint.respond(HttpRequest("POST", "/v2/models/simple/infer", {}, body, came_ns))

    before = repository.counts("simple")
    assert ask_late(parameters={"timeout": 10**6}).status == 503
    assert ask_late().status == 200
    counts = repository.counts("simple")
    assert counts.phase_ns[0] - before.phase_ns[0] >= 10**9
    assert counts.fail_ns - before.fail_ns >= 10**9


def test_an_input_comes_once(endpoint):
    one, other = ones()
    status, said, _ = infer(endpoint, one, other, one)
    assert (status, said["error"][:33]) == (400, "expected 2 inputs but got 3 input")


def test_calls_there_are_not_are_refused(endpoint):
    for method, target in (("GET", "/"), ("POST", "/nothing"), ("GET", "/v2/models")):
        assert ask(endpoint, target, method=method)[0] == 404


def test_a_model_that_cannot_be_loaded_says_why_in_the_index(tmp_path):
    broken = tmp_path / "broken.onnx"
    broken.write_bytes(b"no model")
    repository = Repository(lambda: {"broken": ModelSource(broken)})
    with pytest.raises(OipError, match="failed to load 'broken'"):
        repository.load("broken")
    index = repository.index()
    assert index[0]["state"] == "UNAVAILABLE"
    assert index[0]["reason"]
    assert repository.index(only_ready=True) == []


def test_loading_takes_no_parameters(endpoint):
    body = json.dumps({"parameters": {"config": "{}"}}).encode()
    assert ask(endpoint, "/v2/repository/models/simple/load", body)[0] == 400


def test_calls_that_load_or_run_for_long_are_long(endpoint):
    def request(method, target, body=b""):
        return HttpRequest(method, target, {}, body)

    run = request("POST", "/v2/models/simple/infer?x=1", json.dumps({"inputs": ones()}).encode())
    assert endpoint.is_long(run)
    assert endpoint.respond(run).status == 200
    while endpoint.is_long(run):  # until a run was quick
        endpoint.respond(run)
    assert endpoint.is_long(request("POST", run.target, bytes(1 << 17)))
    assert endpoint.is_long(request("POST", "/v2/repository/models/a/load"))
    assert not endpoint.is_long(request("GET", "/v2/models/infer"))
    assert not endpoint.is_long(request("POST", "/v2/repository/index"))


def test_a_model_of_open_lengths_is_always_long(endpoint):
    tensor = {"name": "x", "datatype": "FP32", "shape": [1, 4], "data": [1] * 4}
    run = HttpRequest(
        "POST", "/v2/models/open/infer", {}, json.dumps({"inputs": [tensor]}).encode()
    )
    for _ in range(3):
        assert endpoint.respond(run).status == 200
        assert endpoint.is_long(run)
