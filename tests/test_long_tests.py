"""The script that runs the long lists of tests counts what pytest reports, and fails with it."""

import json
import sys

import pytest
from benchmarks import long_tests, record
from benchmarks.long_tests import Outcome, printed, run_pytest

SUITE = """import pytest
from hypothesis import given, strategies

def test_good(): pass

def test_bad(): assert False

def test_left_out(): pytest.skip("there is no device")

@given(strategies.integers())
def test_any(number): assert number == number
"""


@pytest.fixture(autouse=True)
def suite(tmp_path, monkeypatch):
    """A suite with a test that passes, one that fails, one that skips and one with a seed."""
    monkeypatch.setattr(record, "ROOT", tmp_path)
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests" / "test_some.py").write_text(SUITE)
    (tmp_path / "conftest.py").write_text(
        "from hypothesis import settings\nsettings.register_profile('searching')\n"
    )


def test_results_are_counted_and_failures_named():
    outcome = run_pytest("slow", ["tests/test_some.py"])
    assert (outcome.passed, outcome.skipped) == (2, 1)
    assert outcome.failures == ("tests.test_some::test_bad",)
    assert not outcome.is_clean


def test_a_list_without_tests_is_a_failure():
    assert not run_pytest("slow", ["tests/test_some.py", "-k", "absent"]).is_clean
    assert not run_pytest("slow", ["gone.py"]).is_clean


def test_one_round_of_properties_runs_them_with_a_seed():
    outcome = long_tests.properties(hours=0)
    assert outcome.is_clean
    assert outcome.passed == len(outcome.seeds) == 1


def test_every_round_of_properties_has_a_seed_that_its_failures_name(monkeypatch):
    one = Outcome("properties", 2, 0, 0.0, ("test_any",))
    monkeypatch.setattr(long_tests, "run_pytest", lambda *_: one)
    outcome = long_tests.properties(hours=1e-4)
    assert len(outcome.seeds) > 1
    assert outcome.passed == 2 * len(outcome.seeds)
    assert outcome.failures == tuple(f"test_any (seed {seed})" for seed in outcome.seeds)


def test_a_command_records_and_prints_every_list(monkeypatch, capsys, tmp_path):
    monkeypatch.setattr(record, "RESULTS", tmp_path)
    made = {
        "good": lambda: Outcome("good", passed=3),
        "bad": lambda: Outcome("bad", 1, 0, 0, ("x",)),
    }
    monkeypatch.setattr(long_tests, "lists", lambda **_: made)
    monkeypatch.setattr(sys, "argv", ["long_tests", "--record", "--json"])
    with pytest.raises(SystemExit) as ended:
        long_tests.main()
    assert ended.value.code == 1
    shown = json.loads(capsys.readouterr().out)
    kept = json.loads((tmp_path / "long_tests.json").read_text())
    assert kept["lists"] == shown
    assert [each["passed"] for each in shown] == [3, 1]


def test_a_device_that_is_missing_is_a_note():
    outcome = Outcome("gpu", note="not run: there is no CUDA device")
    assert outcome.is_clean
    assert "not run: there is no CUDA device" in printed([outcome])


def test_an_unknown_list_is_refused_by_name(monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["long_tests", "everything"])
    with pytest.raises(SystemExit):
        long_tests.main()
    assert "unknown list `everything`; choose from sanitizers" in capsys.readouterr().err
