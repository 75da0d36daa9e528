"""Distributions of a model's requests as histograms of Prometheus."""

from collections.abc import Iterable, Sequence

from tightship._core import RequestMetrics
from tightship.driver.oip.model_entry import VersionState

Distributions = tuple[tuple[tuple[int, ...], int], ...]
"""Counts by bucket with the sum, of each histogram, as `RequestMetrics.histograms` returns them."""

_NS = 1_000_000_000
QUEUE, COMPUTE, RECEIVED, SENT = (
    "tightship_request_queue_seconds",
    "tightship_request_compute_seconds",
    "tightship_request_bytes",
    "tightship_response_bytes",
)
_HISTOGRAMS = (
    (QUEUE, "Seconds of waiting for a permit, of requests that ended well", _NS),
    (COMPUTE, "Seconds of reading inputs, running and writing outputs", _NS),
    (RECEIVED, "Bytes of requests, without tensors in shared memory", 1),
    (SENT, "Bytes of responses, without tensors in shared memory", 1),
)
NATIVE_COUNT = 2
"""Histograms that native clients have, who send no messages of the protocol."""


def distributions_of(state: VersionState) -> dict[str, Distributions]:
    """Return the distributions of a version by endpoint; native ones only if there are requests."""
    found = {"protocol": state.metrics.histograms()}
    native = state.native_metrics.histograms()[:NATIVE_COUNT]
    if any(native[0][0]):
        found["native"] = native
    return found


def histogram_text(models: Iterable[tuple[str, Distributions]]) -> str:
    """Return distributions in Prometheus' text format.

    Args:
        models: Labels, as `model="m",version="1"`, and the distributions, of which the last ones
            may be missing.
    """
    known, lines = list(models), []
    durations, sizes = RequestMetrics.bounds()
    for number, (name, text, unit) in enumerate(_HISTOGRAMS):
        bounds = durations if unit == _NS else sizes
        limits = [*(_number(bound, unit) for bound in bounds), "+Inf"]
        lines += [f"# HELP {name} {text}", f"# TYPE {name} histogram"]
        for labels, distributions in known:
            if number < len(distributions):
                counts, total = distributions[number]
                lines += _series(name, labels, zip(limits, counts, strict=True))
                lines.append(f"{name}_sum{{{labels}}} {_number(total, unit)}")
                lines.append(f"{name}_count{{{labels}}} {sum(counts)}")
    return "\n".join(lines) + "\n"


def _series(name: str, labels: str, buckets: Iterable[tuple[str, int]]) -> Sequence[str]:
    """Return the lines of the buckets, each with the counts of those before it."""
    lines, so_far = [], 0
    for limit, count in buckets:
        so_far += count
        lines.append(f'{name}_bucket{{{labels},le="{limit}"}} {so_far}')
    return lines


def _number(value: int, unit: int) -> str:
    return str(value) if unit == 1 else repr(value / unit)
