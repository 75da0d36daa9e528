"""Measurements in the forms that `tightship run` writes."""

import json

import pytest

from tightship.cli.measured_file import read_measured
from tightship.errors import FormatError, InputError
from tightship.view.timing import TimedStep, Timing
from tightship.view.trace_events import timing_json, trace_events

STEPS = 3
RUNS = ((0, 10, 30, 60), (0, 30, 50, 70), (0, 11, 31, 61))
"""Ends of the steps of each run, after 0."""


def timing():
    steps = tuple(
        TimedStep(f"n{i}", "Add", "numpy" if i else "native", "", "", 1, 1, 64,
                  tuple(run[i] for run in RUNS), tuple(run[i + 1] for run in RUNS))
        for i in range(STEPS)
    )  # fmt: skip
    return Timing("m", steps, tuple(run[-1] for run in RUNS), ((0, 1), (1, 3)), {})


@pytest.fixture
def written(tmp_path):
    def write(values):
        (tmp_path / "run.json").write_text(json.dumps(values))
        return str(tmp_path / "run.json")

    return write


def test_a_run_has_times_and_memory(written):
    run = {"profile": timing_json(timing()), "measured_resident_bytes": 7, "measured_data_bytes": 5}
    found = read_measured(written(run), STEPS)
    assert (found.step_ns, found.resident_bytes, found.data_bytes) == ((11, 20, 30), 7, 5)


def test_a_profile_and_a_trace_have_the_same_times(written):
    for values in (timing_json(timing()), trace_events(timing())):
        found = read_measured(written(values), STEPS)
        assert (found.step_ns, found.resident_bytes, found.data_bytes) == ((11, 20, 30), None, None)


def test_a_run_without_a_profile_has_memory_alone(written):
    found = read_measured(written({"measured_resident_bytes": 7}), STEPS)
    assert (found.step_ns, found.resident_bytes) == ((), 7)


@pytest.mark.parametrize("make", [timing_json, trace_events])
def test_a_measurement_of_another_model_is_refused(written, make):
    with pytest.raises(InputError, match=r"steps and the plan 4: measure the same model"):
        read_measured(written(make(timing())), 4)


@pytest.mark.parametrize(
    "values",
    [{}, [], 5, None, {"profile": {}}, {"steps": [{"time": 1}]}, {"traceEvents": [{}]}],
)
def test_other_json_is_no_measurement(written, values):
    with pytest.raises(FormatError, match=r"is not a measurement: .*; `tightship run MODEL"):
        read_measured(written(values), STEPS)
