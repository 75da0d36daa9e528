"""Histograms for Prometheus, and a dashboard that names only metrics there are."""

import json
import re
from pathlib import Path

import pytest

from tests.driver.oip.endpoint_setting import Setting
from tightship._core import RequestMetrics
from tightship.driver.oip.histograms import COMPUTE, QUEUE, RECEIVED, SENT, histogram_text
from tightship.driver.oip.http.message import HttpRequest
from tightship.driver.oip.monitor import Monitor, _sample

ROOT = Path(__file__).parents[3]
DASHBOARD = ROOT / "examples" / "grafana.json"
MS = 1_000_000


@pytest.fixture
def metrics(tmp_path):
    """Text of `/metrics` after a request, as a server with a page tells it."""
    setting = Setting(tmp_path)
    monitor = Monitor(setting.endpoint, tmp_path / "no.sock")
    monitor._samples.append(_sample(setting.endpoint))
    assert setting.infer()[0] == 200
    yield setting.endpoint.metrics() + monitor.metrics()
    setting.close()


def test_a_value_counts_in_the_bucket_whose_bound_it_does_not_exceed():
    found = RequestMetrics()
    for queue_ns in (0, 100_000, 100_001, 10_000 * MS, 10_000 * MS + 1):
        found.succeed((queue_ns, 1 * MS, 2 * MS, 3 * MS))
    found.transfer(1024, 1025)
    queue, compute, received, sent = found.histograms()
    assert queue == ((2, 1, *[0] * 13, 1, 1), 20_000 * MS + 200_002)
    assert compute == ((0, 0, 0, 0, 0, 0, 5, *[0] * 10), 5 * 6 * MS)
    assert received == ((1, *[0] * 10), 1024)
    assert sent == ((0, 1, *[0] * 9), 1025)


def test_buckets_are_cumulative_and_agree_with_the_count():
    found = RequestMetrics()
    for duration_ns in (50_000, 3 * MS, 60_000 * MS):
        found.succeed((duration_ns, 0, 0, 0))
    lines = histogram_text([('model="m"', found.histograms())]).splitlines()
    assert f"# TYPE {QUEUE} histogram" in lines
    for le, count in (("0.0001", 1), ("0.0025", 1), ("0.005", 2), ("10.0", 2), ("+Inf", 3)):
        assert f'{QUEUE}_bucket{{model="m",le="{le}"}} {count}' in lines
    assert f'{QUEUE}_sum{{model="m"}} 60.00305' in lines
    assert f'{QUEUE}_count{{model="m"}} 3' in lines
    assert f'{RECEIVED}_bucket{{model="m",le="268435456"}} 0' in lines


def test_native_clients_have_no_bytes_of_messages():
    found = RequestMetrics()
    text = histogram_text([('face="native"', found.histograms()[:2])])
    assert f"{COMPUTE}_count" in text
    assert f"{SENT}_count" not in text


def test_the_text_is_what_prometheus_reads(metrics):
    parser = pytest.importorskip("prometheus_client.parser")
    found = {each.name: each for each in parser.text_string_to_metric_families(metrics)}
    assert found[QUEUE].type == "histogram"
    (count,) = [
        sample.value
        for sample in found[RECEIVED].samples
        if sample.name == f"{RECEIVED}_count" and sample.labels["model"] == "neg"
    ]
    assert count == 1


def test_http_counts_the_bytes_of_its_messages(tmp_path):
    setting = Setting(tmp_path)
    body = setting.body()
    response = setting.calls.respond(HttpRequest("POST", "/v2/models/neg/infer", {}, body))
    _, _, received, sent = setting.repository.state("neg").metrics.histograms()
    assert received[1] == len(body)
    assert sent[1] == response.size_bytes
    setting.close()


def test_every_metric_of_the_dashboard_exists(metrics):
    dashboard = json.loads(DASHBOARD.read_text())
    asked = [target["expr"] for panel in dashboard["panels"] for target in panel["targets"]]
    asked += [each["query"] for each in dashboard["templating"]["list"]]
    named = {name for text in asked for name in re.findall(r"\b(?:nv|tightship)_\w+", text)}
    there = {re.split(r"[ {]", line)[0] for line in metrics.splitlines() if line[0] != "#"}
    assert len(named) >= 12
    assert named - there == set()
    labels = {name for text in asked for name in re.findall(r"by \(([^)]*)\)", text)}
    assert {each for text in labels for each in text.split(", ")} <= {"le", "model"}
    assert len({panel["id"] for panel in dashboard["panels"]}) == len(dashboard["panels"])
