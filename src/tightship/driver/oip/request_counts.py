"""How many requests a model had and how long they took, as clients and Prometheus read it."""

import threading
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

PHASES = ("compute_input", "compute_infer", "compute_output")


@dataclass(frozen=True, slots=True)
class Counts:
    """Requests so far; times in nanoseconds.

    Attributes:
        phase_ns: Reading inputs, running, writing outputs; of those that ended well.
        last_ms: When the last ended, since 1970.
        pending_count: Those that have begun and not ended.
    """

    success_count: int = 0
    fail_count: int = 0
    success_ns: int = 0
    fail_ns: int = 0
    phase_ns: tuple[int, int, int] = (0, 0, 0)
    last_ms: int = 0
    pending_count: int = 0


class RequestCounts:
    """The counts of one model. May be used from several threads."""

    def __init__(self) -> None:
        self._successes = self._failures = self._pending = self._last_ms = 0
        self._fail_ns = self._input_ns = self._infer_ns = self._output_ns = 0
        self._lock = threading.Lock()

    @property
    def now(self) -> Counts:
        """The counts at one moment."""
        with self._lock:
            phase_ns = (self._input_ns, self._infer_ns, self._output_ns)
            return Counts(
                self._successes,
                self._failures,
                sum(phase_ns),
                self._fail_ns,
                phase_ns,
                self._last_ms,
                self._pending,
            )

    def begin(self) -> None:
        """A request has begun, and will end well or fail."""
        with self._lock:
            self._pending += 1

    def add_success(self, phase_ns: tuple[int, int, int], at_ms: int) -> None:
        """A request ended well."""
        input_ns, infer_ns, output_ns = phase_ns
        with self._lock:
            self._pending -= 1
            self._successes += 1
            self._input_ns += input_ns
            self._infer_ns += infer_ns
            self._output_ns += output_ns
            self._last_ms = at_ms

    def add_failure(self, duration_ns: int) -> None:
        """A request was refused, or its run failed."""
        with self._lock:
            self._pending -= 1
            self._failures += 1
            self._fail_ns += duration_ns


def statistics_of(name: str, version: str, counts: Counts) -> dict[str, Any]:
    """What the statistics call says of a model."""
    count = counts.success_count
    inference = {
        "success": {"count": count, "ns": counts.success_ns},
        "fail": {"count": counts.fail_count, "ns": counts.fail_ns},
        "queue": {"count": count, "ns": 0},
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
        "execution_count": count,
        "inference_stats": inference,
        "batch_stats": [],
    }


def prometheus_text(models: Iterable[tuple[str, str, Counts]]) -> str:
    """The counts of models (name, version, counts) in Prometheus' text form, under Triton's names.

    Durations are in microseconds.
    """
    known = list(models)
    lines = []
    for metric, text, values in _METRICS:
        kind = "gauge" if metric == PENDING else "counter"
        lines += [f"# HELP {metric} {text}", f"# TYPE {metric} {kind}"]
        lines += [
            f'{metric}{{model="{_escaped(name)}",version="{version}"}} {values(counts)}'
            for name, version, counts in known
        ]
    return "\n".join(lines) + "\n"


PENDING = "nv_inference_pending_request_count"

_METRICS: tuple[tuple[str, str, Callable[[Counts], int]], ...] = (
    ("nv_inference_request_success", "Requests that ended well", lambda c: c.success_count),
    ("nv_inference_request_failure", "Requests that failed", lambda c: c.fail_count),
    (PENDING, "Requests that have begun and not ended", lambda c: c.pending_count),
    ("nv_inference_count", "Inferences", lambda c: c.success_count),
    ("nv_inference_exec_count", "Runs of the model", lambda c: c.success_count),
    (
        "nv_inference_request_duration_us",
        "Microseconds of requests that ended well",
        lambda c: c.success_ns // 1000,
    ),
    (
        "nv_inference_compute_input_duration_us",
        "Microseconds of reading inputs",
        lambda c: c.phase_ns[0] // 1000,
    ),
    (
        "nv_inference_compute_infer_duration_us",
        "Microseconds of running",
        lambda c: c.phase_ns[1] // 1000,
    ),
    (
        "nv_inference_compute_output_duration_us",
        "Microseconds of writing outputs",
        lambda c: c.phase_ns[2] // 1000,
    ),
)


def _escaped(label: str) -> str:
    return label.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")
