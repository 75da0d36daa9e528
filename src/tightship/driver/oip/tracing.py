"""Spans of OpenTelemetry, one for each call of the protocol, by its own library."""

from time import time_ns

from opentelemetry import trace
from opentelemetry.trace import SpanKind, Status, StatusCode, TracerProvider
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from tightship import __version__
from tightship.driver.oip.request_log import Exchange


class Tracing:
    """Makes spans of exchanges that are over. May be used from several threads."""

    def __init__(self, provider: TracerProvider) -> None:
        """Make spans of a provider."""
        self._tracer = trace.get_tracer("tightship", __version__, provider)
        self._propagator = TraceContextTextMapPropagator()

    def __call__(self, exchange: Exchange) -> None:
        """Make the span of an exchange, beneath that of the client if its headers name one."""
        ended_ns = time_ns()
        span = self._tracer.start_span(
            exchange.call,
            self._propagator.extract({"traceparent": exchange.traceparent}),
            SpanKind.SERVER,
            {
                "tightship.request_id": exchange.request_id,
                "tightship.account": exchange.account,
                "client.address": exchange.client,
                "tightship.status": str(exchange.status),
                "tightship.received_bytes": exchange.received_bytes,
                "tightship.sent_bytes": exchange.sent_bytes,
            },
            start_time=ended_ns - int(exchange.duration_ms * 1e6),
        )
        if exchange.is_failure:
            span.set_status(Status(StatusCode.ERROR))
        span.end(ended_ns)


def otlp() -> Tracing:
    """Return tracing that sends its spans by OTLP, as the variables `OTEL_*` say.

    Raises:
        ModuleNotFoundError: The library, or its exporter, is not installed.
    """
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
    from opentelemetry.sdk.trace import TracerProvider as Provider
    from opentelemetry.sdk.trace.export import BatchSpanProcessor

    provider = Provider()  # which sends what it still has when the process ends
    provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
    return Tracing(provider)
