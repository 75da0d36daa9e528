import json

import numpy as np
import pytest

from tests.planner.format.tflite_models import chain, planned
from tests.planner.problems import problem
from tightship.errors import InputError
from tightship.planner import place
from tightship.planner.format import write_csv, write_plan
from tightship.planner.format.problem_file import read_offsets, read_problem, write_placed

MADE = problem((64, 0, 2, 1), (32, 1, 3, 1), (64, 2, 4, 1), names=("a", "b", "c"))
ROWS = MADE.columns().tolist()


@pytest.fixture
def folder(tmp_path):
    plan = place(MADE)
    write_csv(tmp_path / "bare.csv", MADE)
    write_csv(tmp_path / "plan.csv", MADE, plan.offset_bytes)
    write_plan(tmp_path / "plan.json", plan)
    pairs = [[1, 64], [2, 32], [-1, 64], [3, 64], [-2, 32], [-3, 64]]
    (tmp_path / "trace.json").write_text(json.dumps(pairs))
    (tmp_path / "bare.tflite").write_bytes(chain())
    (tmp_path / "plan.tflite").write_bytes(planned([0, -1, 32, 96, -1, 0]))
    (tmp_path / "open.tflite").write_bytes(planned([0, -1, 32, -1, -1, 0]))
    return tmp_path


@pytest.mark.parametrize("name", ["bare.csv", "plan.csv", "plan.json"])
def test_a_problem_is_read_from_any_form(folder, name):
    made, offsets = read_problem(folder / name, capacity_bytes=200)
    assert made.columns().tolist() == ROWS
    assert made.capacity_bytes == 200
    assert (offsets is None) == name.startswith("bare")


def test_a_trace_and_a_model_are_problems_too(folder):
    trace, _ = read_problem(folder / "trace.json", capacity_bytes=200)
    assert trace.size_bytes.tolist() == [64, 32, 64]
    assert trace.capacity_bytes == 200
    model, offsets = read_problem(folder / "plan.tflite", capacity_bytes=200)
    assert model.count == 4
    assert model.capacity_bytes == 200
    assert offsets is not None


@pytest.mark.parametrize("name", ["plan.csv", "plan.json", "plan.tflite"])
def test_offsets_are_read_from_what_has_them(folder, name):
    made, offsets = read_offsets(folder / name)
    assert offsets.shape == (made.count,)


@pytest.mark.parametrize("name", ["bare.csv", "trace.json", "bare.tflite"])
def test_what_has_no_offsets_cannot_be_judged(folder, name):
    with pytest.raises(InputError, match=f"{name}` holds buffers without offsets"):
        read_offsets(folder / name)


def test_a_tensor_left_to_the_interpreter_is_named(folder):
    with pytest.raises(InputError, match="leaves tensor 2 `b` to the interpreter"):
        read_offsets(folder / "open.tflite")


@pytest.mark.parametrize("name", ["out.csv", "out.json"])
def test_a_plan_is_written_and_read_in_each_form(folder, name):
    plan = place(MADE)
    write_placed(folder / name, plan, folder / "bare.csv")
    made, offsets = read_offsets(folder / name)
    assert made.columns().tolist() == ROWS
    assert np.array_equal(offsets, plan.offset_bytes)


@pytest.mark.parametrize(("name", "source"), [("out.tflite", "bare.csv"), ("out.png", "bare.csv")])
def test_another_form_is_refused(folder, name, source):
    with pytest.raises(InputError, match=f"Cannot write a plan of buffers as `{name}`"):
        write_placed(folder / name, place(MADE), folder / source)
    assert not (folder / name).exists()
