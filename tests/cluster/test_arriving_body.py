"""Bodies as they arrive: taken, unpacked, or refused with the remedy."""

import gzip
import json
import zlib

import pytest

from tightship.cluster.arriving_body import ArrivingBody, JsonRequest
from tightship.cluster.request_memory import BodyLimits
from tightship.driver.oip.http.message import HttpRequest, HttpResponse

LIMITS = BodyLimits(raw_bytes=100, json_bytes=300, numbers=10)
INFER = "/v2/models/m/infer"
NUMBERS = {"name": "x", "datatype": "FP32", "shape": [4], "data": [1, 2, 3, 4.5]}
JSON = json.dumps({"inputs": [NUMBERS]}).encode()


def arrived(body, step=7, target=INFER, **headers):
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    found = ArrivingBody(HttpRequest("POST", target, named, b""), LIMITS)
    for start in range(0, len(body), step):
        found.feed(body[start : start + step])
    return found.end()


def refused(response, status):
    assert isinstance(response, HttpResponse)
    assert response.status == status
    return json.loads(response.parts[0])["error"]


@pytest.mark.parametrize(
    ("body", "headers"),
    [
        (JSON, {}),
        (gzip.compress(JSON), {"content_encoding": "gzip"}),
        (zlib.compress(JSON), {"content_encoding": "deflate"}),
    ],
    ids=["plain", "gzip", "deflate"],  # a packed body has the time in it
)
def test_json_becomes_arrays(body, headers):
    found = arrived(body, **headers)
    assert isinstance(found, JsonRequest)
    (tensor,) = found.arrays.request().inputs
    assert len(tensor.content) == 16


def test_raw_bodies_stay_bytes():
    found = arrived(b"x" * 100, inference_header_content_length="2")
    assert bytes(found.body) == b"x" * 100
    assert bytes(arrived(b"{}", target="/v2/repository/models/m/unload").body) == b"{}"


def test_large_bodies_are_refused_with_the_remedy():
    text = refused(arrived(b"x" * 101, inference_header_content_length="2"), 413)
    assert text.startswith("the request has 101 bytes; this replica has room for 100.")
    assert "`max_memory`" in text
    assert "of text besides numbers" in refused(arrived(b" " * 301), 413)
    packed = gzip.compress(b" " * 1_000_000)
    assert "room for 300" in refused(arrived(packed, content_encoding="gzip"), 413)


def test_bodies_that_do_not_unpack_are_refused():
    packed = gzip.compress(JSON)
    assert "does not unpack" in refused(arrived(JSON, content_encoding="gzip"), 400)
    assert "ends early" in refused(arrived(packed[:-4], content_encoding="gzip"), 400)
    assert "late" in refused(arrived(packed + b"x", content_encoding="gzip"), 400)
    assert "'br'" in refused(arrived(JSON, content_encoding="br"), 501)
    assert "misplaced" in refused(arrived(b'{"data":[1[2]]}'), 400)


def test_a_lack_of_memory_is_the_refusal_unless_there_is_one():
    found = ArrivingBody(HttpRequest("POST", INFER, {}, b""), LIMITS)
    found.overrun(MemoryError())
    assert refused(found.end(), 503)
    found = ArrivingBody(HttpRequest("POST", INFER, {}, b""), LIMITS)
    found.feed(b" " * 301)
    found.overrun(MemoryError())
    assert refused(found.end(), 413)
