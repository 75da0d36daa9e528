"""Spans of calls, by OpenTelemetry's own library."""

import sys
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest

pytest.importorskip("opentelemetry.sdk.trace")
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import (
    InMemorySpanExporter,
)
from opentelemetry.trace import SpanKind, StatusCode

from tests.driver.oip.serve_process import serve_neg
from tightship.cli.admission_options import entry_of
from tightship.cli.arguments import parser
from tightship.driver.oip.request_log import begin
from tightship.driver.oip.tracing import Tracing
from tightship.errors import InputError

PARENT = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"


def span_of(status, **headers):
    exporter, provider = InMemorySpanExporter(), TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    exchange = begin("ModelInfer", headers, (Tracing(provider),))
    exchange.status, exchange.account, exchange.sent_bytes = status, "token:alice", 7
    exchange.end()
    (span,) = exporter.get_finished_spans()
    return span


def test_a_call_is_a_span_beneath_that_of_its_client():
    span = span_of(200, traceparent=PARENT, **{"x-request-id": "seven"})
    assert (span.name, span.kind) == ("ModelInfer", SpanKind.SERVER)
    assert f"{span.context.trace_id:032x}" == PARENT[3:35]
    assert f"{span.parent.span_id:016x}" == PARENT[36:52]
    assert span.attributes["tightship.request_id"] == "seven"
    assert span.attributes["tightship.account"] == "token:alice"
    assert span.attributes["tightship.sent_bytes"] == 7
    assert span.end_time >= span.start_time


@pytest.mark.parametrize(
    "given", ["", "00-0-0-01", "x" * 60_000, "00-" + "0" * 32 + "-1-01", "\xff"]
)
def test_a_header_that_is_not_valid_begins_a_trace(given):
    span = span_of("OK", traceparent=given)
    assert span.parent is None
    assert span.context.trace_id


@pytest.mark.parametrize(
    ("status", "is_error"),
    [
        *((status, False) for status in (200, 404, "OK", "NOT_FOUND")),
        *((status, True) for status in (503, "INTERNAL", "UNAVAILABLE", "")),
    ],
)
def test_a_failure_of_the_server_is_an_error(status, is_error):
    assert (span_of(status).status.status_code is StatusCode.ERROR) is is_error


def test_a_library_that_is_not_there_is_named(monkeypatch):
    for name in ("opentelemetry.exporter.otlp", "opentelemetry.exporter.otlp.proto"):
        monkeypatch.setitem(sys.modules, name, None)
    options = parser().parse_args(["serve", "--http", "0", "--otel"])
    with pytest.raises(InputError, match=r"`--otel` needs the package .*; pip install opentelem"):
        entry_of(options)
    assert entry_of(parser().parse_args(["serve", "--http", "0"])).sinks == ()


class Collector(BaseHTTPRequestHandler):
    """Receives spans by OTLP."""

    def do_POST(self):
        length = int(self.headers["Content-Length"])
        self.server.received.append((self.path, self.rfile.read(length)))
        self.send_response(200)
        self.end_headers()

    def log_message(self, *_):
        """Say nothing."""


def test_spans_are_sent_before_the_server_ends(tmp_path, monkeypatch):
    pytest.importorskip("opentelemetry.exporter.otlp.proto.http.trace_exporter")
    collector = HTTPServer(("127.0.0.1", 0), Collector)
    collector.received = []
    thread = threading.Thread(target=collector.serve_forever)
    thread.start()
    url = f"http://127.0.0.1:{collector.server_port}"
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", url)
    with collector:
        try:
            with serve_neg(tmp_path, "--otel") as serve:
                _, headers, _ = serve.ask("GET", "/v2/models/neg", traceparent=PARENT)
        finally:
            collector.shutdown()
            thread.join()
    request_id = headers["X-Request-ID"].encode()
    (found,) = [body for path, body in collector.received if path == "/v1/traces"]
    assert request_id in found
    assert bytes.fromhex(PARENT[3:35]) in found
