"""Counts and durations of a model's requests, for clients and Prometheus."""

import threading
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from tightship._core import RequestMetrics

PHASES = ("queue", "compute_input", "compute_infer", "compute_output")


@dataclass(frozen=True, slots=True)
class Counts:
    """Requests so far, with durations in nanoseconds.

    Attributes:
        phase_ns: Time of successful requests waiting, reading inputs, running, writing outputs.
        last_ms: Milliseconds since 1970 at the end of the last request.
        pending_count: Requests that wait for a run permit now.
        joined_count: Successful requests that were part of another one's run.
    """

    success_count: int = 0
    fail_count: int = 0
    success_ns: int = 0
    fail_ns: int = 0
    phase_ns: tuple[int, int, int, int] = (0, 0, 0, 0)
    last_ms: int = 0
    pending_count: int = 0
    joined_count: int = 0

    @property
    def run_count(self) -> int:
        """Runs of the model that ended well."""
        return self.success_count - self.joined_count


class JoinedCount:
    """Number of requests that were part of another one's run. May be used from several threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.value = 0

    def add(self, count: int) -> None:
        """Count further requests."""
        with self._lock:
            self.value += count


def counts_of(metrics: RequestMetrics, joined: JoinedCount | None = None) -> Counts:
    """Return the counts of a model at one moment."""
    joined_count = 0 if joined is None else joined.value  # first: it must not exceed successes
    successes, failures, pending, fail_ns, phase_ns, last_ms = metrics.now()
    sums = successes, failures, sum(phase_ns), fail_ns, phase_ns, last_ms, pending
    return Counts(*sums, min(joined_count, successes))


def statistics_of(name: str, version: str, counts: Counts) -> dict[str, Any]:
    """Return the reply to the statistics call for a model."""
    count = counts.success_count
    inference = {
        "success": {"count": count, "ns": counts.success_ns},
        "fail": {"count": counts.fail_count, "ns": counts.fail_ns},
        **{
            phase: {"count": count, "ns": spent}
            for phase, spent in zip(PHASES, counts.phase_ns, strict=True)
        },
        "cache_hit": {"count": 0, "ns": 0},
        "cache_miss": {"count": 0, "ns": 0},
    }
    return {
        "name": name,
        "version": version,
        "last_inference": counts.last_ms,
        "inference_count": count,
        "execution_count": counts.run_count,
        "inference_stats": inference,
        "batch_stats": [],
    }


def added(first: Counts, second: Counts) -> Counts:
    """Return the sum of two counts."""
    phases = zip(first.phase_ns, second.phase_ns, strict=True)
    queue_ns, input_ns, infer_ns, output_ns = (one + other for one, other in phases)
    return Counts(
        first.success_count + second.success_count,
        first.fail_count + second.fail_count,
        first.success_ns + second.success_ns,
        first.fail_ns + second.fail_ns,
        (queue_ns, input_ns, infer_ns, output_ns),
        max(first.last_ms, second.last_ms),
        first.pending_count + second.pending_count,
        first.joined_count + second.joined_count,
    )


def prometheus_text(models: Iterable[tuple[str, str, str, Counts]]) -> str:
    """Return counts in Prometheus' text format under Triton's names; durations in microseconds.

    Args:
        models: Name, version, endpoint and counts of each model.
    """
    known = list(models)
    lines = []
    for metric, text, values in _METRICS:
        kind = "gauge" if metric == PENDING else "counter"
        lines += [f"# HELP {metric} {text}", f"# TYPE {metric} {kind}"]
        lines += [
            f"{metric}{{{labels_of(name, version, endpoint)}}} {values(counts)}"
            for name, version, endpoint, counts in known
        ]
    return "\n".join(lines) + "\n"


PENDING = "nv_inference_pending_request_count"

_METRICS: tuple[tuple[str, str, Callable[[Counts], int]], ...] = (
    ("nv_inference_request_success", "Requests that ended well", lambda c: c.success_count),
    ("nv_inference_request_failure", "Requests that failed", lambda c: c.fail_count),
    (PENDING, "Requests that wait for a permit now", lambda c: c.pending_count),
    ("nv_inference_count", "Inferences", lambda c: c.success_count),
    ("nv_inference_exec_count", "Runs of the model", lambda c: c.run_count),
    (
        "nv_inference_request_duration_us",
        "Microseconds of requests that ended well",
        lambda c: c.success_ns // 1000,
    ),
    (
        "nv_inference_queue_duration_us",
        "Microseconds of waiting for a permit",
        lambda c: c.phase_ns[0] // 1000,
    ),
    (
        "nv_inference_compute_input_duration_us",
        "Microseconds of reading inputs",
        lambda c: c.phase_ns[1] // 1000,
    ),
    (
        "nv_inference_compute_infer_duration_us",
        "Microseconds of running",
        lambda c: c.phase_ns[2] // 1000,
    ),
    (
        "nv_inference_compute_output_duration_us",
        "Microseconds of writing outputs",
        lambda c: c.phase_ns[3] // 1000,
    ),
)


def labels_of(name: str, version: str, endpoint: str) -> str:
    """Return the labels of a model's metrics in Prometheus' text format."""
    return f'model="{escaped(name)}",version="{version}",face="{endpoint}"'


def escaped(label: str) -> str:
    """Return the value of a label as Prometheus' text format has it."""
    return label.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")
