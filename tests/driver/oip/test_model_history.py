"""Samples of models: rates between two moments, in memory that does not grow."""

from dataclasses import replace

import pytest

from tightship.driver.oip import model_history
from tightship.driver.oip.model_history import ModelHistory, Moment

FIRST = Moment(10, 8, 4, 3, 4096, 8192)


def test_a_sample_has_the_rates_since_the_one_before():
    history = ModelHistory()
    history.add(1000, {"net": FIRST})
    history.add(3000, {"net": Moment(30, 28, 9, 0, 5000, 8192)})
    history.add(4000, {"net": Moment(30, 28, 9, 1, 5000, 8192)})
    assert history.since(0) == {
        "net": [
            [1000, 0, 3, 0, 4096, 8192],
            [3000, 10, 0, 4, 5000, 8192],
            [4000, 0, 1, 0, 5000, 8192],
        ]
    }
    assert history.since(3000) == {"net": [[4000, 0, 1, 0, 5000, 8192]]}
    assert history.since(4000) == {"net": []}


def test_a_model_that_is_gone_is_forgotten_and_begins_anew():
    history = ModelHistory()
    history.add(1000, {"net": FIRST})
    history.add(2000, {})
    assert history.since(0) == {}
    history.add(3000, {"net": replace(FIRST, request_count=0, success_count=0, run_count=0)})
    assert [row[0] for row in history.since(0)["net"]] == [3000]


@pytest.mark.parametrize("name", ["SAMPLES_MAX", "MODELS_MAX"])
def test_samples_and_models_are_bounded(monkeypatch, name):
    monkeypatch.setattr(model_history, name, 3)
    history = ModelHistory()
    for at_ms in range(1, 6):
        moments = {str(each): replace(FIRST, request_count=each) for each in range(5)}
        history.add(at_ms, moments)
    found = history.since(0)
    if name == "MODELS_MAX":
        assert set(found) == {"4", "3", "2"}
    else:
        assert [row[0] for row in found["0"]] == [3, 4, 5]
