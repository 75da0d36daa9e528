"""Counts of answers, for Prometheus."""

from prometheus_client.parser import text_string_to_metric_families

from tightship.driver.texts.answer import Ended
from tightship.driver.texts.text_counts import (
    BOUNDS_S,
    REASONS,
    TextCounts,
    TextState,
    text_metrics,
)
from tightship.errors import InputError, StoppedError


def filled() -> TextCounts:
    counts = TextCounts()
    for seconds in (0.001, 0.01, 0.3, 99.0):
        counts.begin(seconds)
    counts.end(Ended("stop", 10, 4, 3))
    counts.end(Ended("length", 5, 0, 2))
    counts.end(Ended(None, error=StoppedError("gone")))
    counts.end(Ended(None, error=InputError("no")))
    counts.refuse()
    return counts


def test_the_text_is_what_prometheus_reads() -> None:
    text = text_metrics([TextState('a"b', filled(), 1, 2, 4)])
    found = {
        (sample.name.removesuffix("_total"), *sorted(sample.labels.items())): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }

    def value(name: str, *more: tuple[str, str]) -> float:
        return found[(f"tightship_text_{name}", *sorted((("model", 'a"b'), *more)))]

    totals = ("prompt_tokens", "cached_tokens", "completion_tokens", "refused")
    assert [value(name) for name in totals] == [15, 4, 5, 1]
    assert [value(name) for name in ("running", "waiting", "sessions")] == [1, 2, 4]
    assert {value("answers", ("reason", reason)) for reason in REASONS} == {1}
    buckets = [value("first_token_seconds_bucket", ("le", str(b))) for b in (*BOUNDS_S, "+Inf")]
    assert buckets == [2] * 5 + [3] * 7 + [4]
    assert value("first_token_seconds_count") == 4
    assert value("first_token_seconds_sum") == 99.311
