"""Durations of runs, reported to clients that request them (R41, R89)."""

import time

import numpy as np
import pytest

from tests.driver.native_driver import driver
from tests.small_models import dense, dense_result
from tightship.driver.protocol.replies import UNTIMED

MODEL, WEIGHTS = dense()
X = np.ones((4, 32), np.float32)
Y = dense_result(X, WEIGHTS)
WAYS = [
    "sync",
    "placed",
    "due",
    "burst",
    "placed in a burst",
    "reusable",
    "reusable, due",
    "fenced",
]


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    with driver(tmp_path_factory.mktemp("driver")) as served, served.client() as client:
        model = client.prepare(MODEL)
        with client.segment(1 << 12) as segment:
            model.ends = [segment.place((4, 32), "f4")], [segment.place((4, 8), "f4")]
            model.ends[0][0].array[...] = X
            yield model


def run(model, way, **terms):
    """The results of three runs."""
    match way:
        case "sync":
            return [model.execute([X], **terms) for _ in range(3)]
        case "placed":
            return [model.execute(*model.ends, **terms) for _ in range(3)]
        case "due":
            return [model.execute([X], timeout_s=60, **terms) for _ in range(3)]
        case "fenced":
            return [fenced(model, terms) for _ in range(3)]
    limit_s = 60 if "due" in way else None
    if "reusable" in way:
        with model.reusable([X], **terms) as again:
            return [again.execute(timeout_s=limit_s) for _ in range(3)]
    with model.burst() as burst:
        ends = model.ends if "placed" in way else ([X],)
        return [burst.execute(*ends, **terms) for _ in range(3)]


def fenced(model, terms):
    with model.execute_fenced([X], **terms) as execution:
        results = execution.wait(60)
        assert execution.info().timing_fenced == results.timing
        return results


@pytest.mark.parametrize("way", WAYS)
def test_runs_that_are_measured_say_how_long_they_took(model, way):
    start_ns = time.monotonic_ns()
    found = run(model, way, measure_timing=True)
    passed_ns = time.monotonic_ns() - start_ns
    for results in found:
        np.testing.assert_allclose(results[0], Y, 1e-4, 1e-4)
        assert 0 <= results.timing.on_device_ns <= results.timing.in_driver_ns
        assert results.timing.in_driver_ns > 0
    assert sum(results.timing.in_driver_ns for results in found) <= passed_ns
    assert len({results.timing for results in found}) > 1


@pytest.mark.parametrize("way", WAYS)
def test_other_runs_say_nothing_though_one_before_was_measured(model, way):
    run(model, way, measure_timing=True)
    for results in run(model, way):
        assert results.timing == UNTIMED
        assert (results.timing.on_device_ns, results.timing.in_driver_ns) == (-1, -1)
        np.testing.assert_allclose(results[0], Y, 1e-4, 1e-4)
