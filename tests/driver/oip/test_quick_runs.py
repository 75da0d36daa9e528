"""Inferences that are known to be quick."""

from types import SimpleNamespace

from tightship.driver.oip import quick_runs
from tightship.driver.oip.quick_runs import QUICK_NS, RECENT, QuickRuns

EVEN, UNEVEN = SimpleNamespace(has_even_runs=True), SimpleNamespace(has_even_runs=False)


def test_the_quickest_of_the_last_runs_counts():
    runs = QuickRuns()
    assert not runs.have("model")
    runs.note(EVEN, "model", QUICK_NS)
    assert not runs.have("model")
    runs.note(EVEN, "model", QUICK_NS - 1)
    assert runs.have("model")
    for _ in range(RECENT):
        runs.note(EVEN, "model", QUICK_NS)
    assert not runs.have("model")
    assert not runs.have("other")


def test_nothing_is_known_of_runs_that_equal_shapes_do_not_make_equally_long():
    runs = QuickRuns()
    runs.note(UNEVEN, "model", 1)
    runs.note(EVEN, None, 1)
    assert not runs.have("model")
    assert not runs.have(None)


def test_few_are_kept_and_none_once_models_change(monkeypatch):
    monkeypatch.setattr(quick_runs, "KEYS_MAX", 2)
    runs = QuickRuns()
    for key in range(3):
        runs.note(EVEN, key, 1)
    assert [runs.have(key) for key in range(3)] == [False, False, True]
    runs.forget()
    assert not runs.have(2)
