"""Bodies that come packed, and metrics as text."""

import gzip
import time
import zlib

import pytest

from tightship._core import QueuedRuns, RequestMetrics, RunPermits
from tightship.driver.oip.http.message import HttpRequest
from tightship.driver.oip.refusal import OipError
from tightship.driver.oip.request_counts import counts_of, prometheus_text, statistics_of


def packed(body, encoding):
    return HttpRequest("POST", "/", {"content-encoding": encoding}, body)


@pytest.mark.parametrize(("pack", "name"), [(gzip.compress, "gzip"), (zlib.compress, "deflate")])
def test_a_packed_body_may_have_as_many_bytes_as_any(pack, name):
    assert packed(pack(bytes(1000)), name).content(1000) == bytes(1000)
    for length in (1001, 1 << 20):
        with pytest.raises(OipError, match="unpacks to more than 1000 bytes"):
            packed(pack(bytes(length)), name).content(1000)
    assert packed(pack(b"1"), name.upper()).content(1000) == b"1"
    with pytest.raises(OipError, match="ends early"):
        packed(pack(bytes(1000))[:-1], name).content(1000)
    with pytest.raises(OipError, match="bytes behind its end"):
        packed(pack(b"1") + pack(b"2"), name).content(1000)


def test_statistics_and_metrics_say_the_same():
    metrics, began_ms = RequestMetrics(), time.time_ns() // 1_000_000
    waiting = QueuedRuns(RunPermits(1), -1)
    assert [waiting.join(run, ("m", "", "", ""), 0, metrics) for run in (1, 2)] == [True, False]
    metrics.succeed((5000, 1000, 20_000, 3000))
    metrics.succeed((0, 1000, 20_000, 3000))
    metrics.fail(500)
    counts = counts_of(metrics)
    assert counts.pending_count == 1
    said = statistics_of("m", "1", counts)
    assert began_ms <= said["last_inference"] <= time.time_ns() // 1_000_000
    assert said["inference_stats"]["success"] == {"count": 2, "ns": 53_000}
    assert said["inference_stats"]["fail"] == {"count": 1, "ns": 500}
    assert said["inference_stats"]["compute_infer"] == {"count": 2, "ns": 40_000}
    assert said["inference_stats"]["queue"] == {"count": 2, "ns": 5000}
    lines = prometheus_text([('a"b', "1", "protocol", counts)]).splitlines()
    labels = r'{model="a\"b",version="1",face="protocol"}'
    assert f"nv_inference_request_success{labels} 2" in lines
    assert f"nv_inference_queue_duration_us{labels} 5" in lines
    assert f"nv_inference_compute_infer_duration_us{labels} 40" in lines
