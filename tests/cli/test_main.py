import json
import subprocess
import sys
import warnings
from dataclasses import replace
from unittest.mock import Mock

import numpy as np
import onnx
import pytest

import tightship
from tests.small_models import dense, nonzero
from tests.zoo import light
from tightship.cli import main, place_command
from tightship.planner import place
from tightship.planner.format import read_csv

CSV = "id,lower,upper,size\n0,0,3,4\n1,1,4,8\n2,3,5,4\n"


@pytest.fixture
def model_file(tmp_path):
    path = tmp_path / "dense.onnx"
    path.write_bytes(dense()[0])
    return path


@pytest.fixture
def csv_file(tmp_path):
    path = tmp_path / "buffers.csv"
    path.write_text(CSV)
    return path


def run(capsys, *arguments):
    code = main([str(argument) for argument in arguments])
    captured = capsys.readouterr()
    return code, captured.out, captured.err


def usage_error(capsys, *arguments):
    with pytest.raises(SystemExit) as left:
        main([str(argument) for argument in arguments])
    assert left.value.code == 2
    return capsys.readouterr().err


def test_plan_leads_with_the_peak_in_at_most_100_columns(capsys, model_file):
    code, out, _ = run(capsys, "plan", model_file, "--shape", "x=4x32")
    assert code == 0
    plan = tightship.plan(model_file, shapes={"x": (4, 32)})
    assert f"{plan.peak_bytes:,} bytes" in out
    assert max(map(len, out.splitlines())) <= 100


def test_plan_in_json_holds_the_same_integers(capsys, model_file):
    _, out, _ = run(capsys, "plan", model_file, "--shape", "x=4x32", "--json")
    values = json.loads(out)
    plan = tightship.plan(model_file, shapes={"x": (4, 32)})
    assert values["peak_bytes"] == plan.peak_bytes
    assert values["arena_bytes"] == plan.arena_bytes
    assert values["weights_bytes"] == plan.weights_bytes


def test_a_plan_over_the_limit_is_printed_and_refused(capsys, model_file):
    code, out, err = run(capsys, "plan", model_file, "--shape", "x=4x32", "--max-memory", "1MiB")
    assert code == 1
    assert "peak memory" in out
    assert "Raise the limit" in err


def test_the_limit_may_come_from_the_environment(capsys, model_file, monkeypatch):
    monkeypatch.setenv("TIGHTSHIP_MAX_MEMORY", "1MiB")
    assert run(capsys, "plan", model_file, "--shape", "x=4x32")[0] == 1
    assert run(capsys, "run", model_file, "--shape", "x=4x32")[0] == 1


def test_the_limit_of_the_environment_is_for_models(capsys, csv_file, model_file, monkeypatch):
    monkeypatch.setenv("TIGHTSHIP_MAX_MEMORY", "a lot")
    assert run(capsys, "place", csv_file)[0] == 0
    code, _, err = run(capsys, "plan", model_file, "--shape", "x=4x32")
    assert code == 2
    assert "TIGHTSHIP_MAX_MEMORY: `a lot` is not an amount" in err


def test_missing_shapes_are_asked_for_where_a_limit_is_to_hold(capsys, model_file):
    code, out, err = run(capsys, "plan", model_file, "--max-memory", "1GiB")
    assert (code, out) == (2, "")
    assert "--shape x=" in err


@pytest.mark.parametrize("suffix", ["html", "svg", "json", "csv", "txt"])
def test_a_plan_is_written_in_every_form(capsys, model_file, tmp_path, suffix):
    out = tmp_path / f"plan.{suffix}"
    assert run(capsys, "plan", model_file, "--shape", "x=4x32", "-o", out)[0] == 0
    assert out.stat().st_size > 20


def test_an_unknown_form_is_refused_and_nothing_is_written(capsys, model_file, tmp_path):
    out = tmp_path / "plan.pdf"
    code, _, err = run(capsys, "plan", model_file, "--shape", "x=4x32", "-o", out)
    assert code == 2
    assert ".html" in err
    assert not out.exists()


def test_a_csv_is_minimised_and_its_solution_written(capsys, csv_file, tmp_path):
    out = tmp_path / "placed.csv"
    code, text, _ = run(capsys, "place", csv_file, "--json", "-o", out)
    values = json.loads(text)
    assert code == 0
    assert values["status"] == "optimal"
    assert values["peak_bytes"] == values["lower_bound_bytes"] == 12
    assert values["solve_ns"] > 0
    assert out.read_text().splitlines()[0].startswith("id,lower,upper,size")
    assert "offset" in out.read_text().splitlines()[0]


@pytest.mark.parametrize(("capacity", "code"), [(12, 0), (11, 1)])
def test_a_capacity_is_met_or_proved_too_small(capsys, csv_file, capacity, code):
    assert run(capsys, "place", csv_file, "--capacity", capacity)[0] == code


def test_buffers_that_do_not_fit_together_are_named(capsys, csv_file):
    _, out, _ = run(capsys, "place", csv_file, "--capacity", 11)
    assert "proved not to fit" in out
    assert "these 2 buffers do not fit together" in out
    assert "the others do: `0`, `1`" in out or "the others do: `1`, `2`" in out
    _, out, _ = run(capsys, "place", csv_file, "--capacity", 11, "--json")
    conflict = json.loads(out)["conflict"]
    assert conflict["minimal"]
    assert conflict["buffers"] in (["0", "1"], ["1", "2"])


def test_minimize_goes_on_where_a_capacity_is_met(capsys, csv_file):
    code, out, _ = run(capsys, "place", csv_file, "--capacity", 1000, "--minimize", "--json")
    values = json.loads(out)
    assert code == 0
    assert values["peak_bytes"] == 12
    assert values["capacity_bytes"] == 1000
    assert values["conflict"] is None


def test_an_undecided_plan_has_an_exit_code_of_its_own(capsys, csv_file, monkeypatch):
    undecided = replace(place(read_csv(csv_file, capacity_bytes=12)[0]), status="budget")
    monkeypatch.setattr(place_command, "place", lambda *_, **__: undecided)
    code, out, _ = run(capsys, "place", csv_file, "--capacity", 12)
    assert code == 3
    assert "none was excluded" in out


def test_options_of_the_other_kind_are_refused(capsys, csv_file, model_file):
    for option in (("--shape", "x=1"), ("--without", "onednn"), ("--dynamic-memory", "1MiB")):
        code, _, err = run(capsys, "plan", csv_file, *option)
        assert code == 2
        assert f"`{option[0]}` is for a model" in err
    assert run(capsys, "plan", model_file, "--capacity", "5")[0] == 2
    assert run(capsys, "plan", model_file, "--minimize")[0] == 2


def test_each_verb_names_the_other_one(capsys, csv_file, model_file):
    code, out, err = run(capsys, "place", model_file)
    assert (code, out) == (2, "")
    assert "is not a file of buffers" in err
    assert "`tightship plan` plans a model" in err
    _, placed, _ = run(capsys, "place", csv_file, "--json")
    with warnings.catch_warnings():
        warnings.simplefilter("default")
        code, planned, err = run(capsys, "plan", csv_file, "--json")
    assert code == 0
    assert json.loads(planned)["offset_bytes"] == json.loads(placed)["offset_bytes"]
    assert "`tightship plan BUFFERS` is now `tightship place BUFFERS`" in err


@pytest.mark.parametrize("suffix", [".html", ".svg"])
def test_a_plan_of_buffers_is_drawn(capsys, csv_file, tmp_path, suffix):
    picture = tmp_path / f"plan{suffix}"
    assert run(capsys, "place", csv_file, "-o", picture)[0] == 0
    assert "12 B" in picture.read_text()


@pytest.mark.parametrize(("verb", "missing"), [("place", "none.csv"), ("plan", "none.onnx")])
def test_a_form_that_no_plan_has_is_refused_before_reading(capsys, tmp_path, verb, missing):
    code, _, err = run(capsys, verb, tmp_path / missing, "-o", "plan.png")
    assert code == 2
    assert "`plan.png`" in err


def test_run_compares_the_plan_with_what_happened(capsys, model_file):
    code, out, _ = run(capsys, "run", model_file, "--shape", "x=4x32", "--json", "--repeat", "3")
    values = json.loads(out)
    assert code == 0
    assert values["outputs"]["y"] == {"shape": [4, 8], "dtype": "float32"}
    assert len(values["run_ns"]) == 3


def test_run_reads_inputs_and_writes_outputs(capsys, model_file, tmp_path):
    x = np.arange(128, dtype=np.float32).reshape(4, 32)
    np.save(tmp_path / "x.npy", x)
    given = f"x={tmp_path / 'x.npy'}"
    arguments = ("--shape", "x=4x32", "--input", given, "-o", tmp_path / "out")
    assert run(capsys, "run", model_file, *arguments)[0] == 0
    with tightship.load(model_file, shapes={"x": (4, 32)}) as model:
        np.testing.assert_array_equal(np.load(tmp_path / "out" / "y.npy"), model(x))


@pytest.mark.parametrize("content", [b"", b"no array", b"\x93NUMPY\x01\x00"])
def test_an_input_that_is_no_array_is_named(capsys, model_file, tmp_path, content):
    (tmp_path / "x.npy").write_bytes(content)
    given = f"x={tmp_path / 'x.npy'}"
    code, _, err = run(capsys, "run", model_file, "--shape", "x=4x32", "--input", given)
    assert code == 2
    assert "x.npy` is not an array" in err


def test_run_without_a_model_runs_the_resnet_of_the_onnx_package(capsys):
    code, out, _ = run(capsys, "run", "--repeat", "1", "--json")
    values = json.loads(out)
    assert code == 0
    assert values["model"] == "light_resnet50.onnx"
    assert values["exact"]


def test_a_bounded_plan_says_so_and_needs_a_bound_under_a_limit(capsys, tmp_path):
    path = tmp_path / "nonzero.onnx"
    path.write_bytes(nonzero())
    assert "bounded" in run(capsys, "plan", path)[1]
    assert run(capsys, "run", path, "--max-memory", "1GiB")[0] == 1
    bounded = ("--max-memory", "1GiB", "--dynamic-memory", "64MiB")
    assert run(capsys, "run", path, *bounded)[0] == 0
    assert run(capsys, "run", path, "--max-memory", "1GiB", "--dynamic-memory", "4KiB")[0] == 1


def test_view_writes_one_offline_page(capsys, model_file, csv_file, tmp_path):
    page = tmp_path / "plan.html"
    assert run(capsys, "view", model_file, "--shape", "x=4x32", "-o", page)[0] == 0
    assert "<canvas" in page.read_text()
    assert run(capsys, "view", csv_file, "-o", tmp_path / "csv.svg")[0] == 0
    assert run(capsys, "view", csv_file, "-o", tmp_path / "csv.png")[0] == 2


def test_a_folder_that_does_not_exist_is_named_and_not_made(capsys, model_file, tmp_path):
    out = tmp_path / "gone" / "plan.html"
    code, _, err = run(capsys, "view", model_file, "--shape", "x=4x32", "-o", out)
    assert code == 2
    assert f"`{out}`: The folder to write into does not exist." in err
    assert not out.parent.exists()


@pytest.mark.parametrize("content", [b"", b"not a model", b"\x00" * 100])
def test_a_file_that_is_no_model_is_named(capsys, tmp_path, content):
    path = tmp_path / "odd.onnx"
    path.write_bytes(content)
    code, out, err = run(capsys, "plan", path)
    assert (code, out) == (2, "")
    assert "odd.onnx" in err


def test_a_missing_file_and_a_folder_are_named(capsys, tmp_path):
    assert "nowhere.onnx" in run(capsys, "plan", tmp_path / "nowhere.onnx")[2]
    assert run(capsys, "plan", tmp_path)[0] == 2
    assert run(capsys, "place", tmp_path / "nowhere.csv")[0] == 2


@pytest.mark.parametrize("limit", ["0", "-1", "12 apples", "1e400", "nan"])
def test_a_limit_that_is_no_amount_is_a_usage_error(capsys, limit):
    assert "memory" in usage_error(capsys, "plan", "m.onnx", f"--max-memory={limit}")


@pytest.mark.parametrize("time", ["0", "-1", "nan", "inf", "soon"])
def test_a_timeout_that_is_no_time_is_a_usage_error(capsys, time):
    assert "not a time" in usage_error(capsys, "run", "m.onnx", f"--timeout={time}")


def test_a_run_that_its_timeout_ends_has_an_exit_code_of_its_own(capsys, model_file):
    code, _, err = run(capsys, "run", model_file, "--shape", "x=4x32", "--timeout", "1e-9")
    assert code == 3
    assert "deadline" in err


@pytest.mark.parametrize("shape", ["x", "=1", "x=1y2", "x=-1", "x=1x"])
def test_a_shape_that_is_none_is_a_usage_error(capsys, shape):
    assert "shape" in usage_error(capsys, "plan", "m.onnx", f"--shape={shape}")


def test_a_wrong_pass_lists_them_all(capsys, model_file):
    code, _, err = run(capsys, "plan", model_file, "--shape", "x=4x32", "--without", "magic")
    assert code == 2
    assert "fold_constants" in err


def test_every_pass_can_be_left_out(capsys, model_file):
    from tightship.engine.lower.pipeline import pass_names

    for name in pass_names():
        arguments = ("--shape", "x=4x32", "--without", name, "--json")
        values = json.loads(run(capsys, "plan", model_file, *arguments)[1])
        assert values["key"]["without"] == name


def test_the_same_file_gives_the_same_plan_in_another_process():
    command = [sys.executable, "-m", "tightship.cli", "plan", light.path_of("squeezenet"), "--json"]
    texts = {
        subprocess.run(command, capture_output=True, text=True, check=True).stdout for _ in range(2)
    }
    assert len(texts) == 1


def test_a_reader_that_leaves_early_is_no_error():
    command = f"{sys.executable} -m tightship.cli plan {light.path_of('squeezenet')} | head -1"
    done = subprocess.run(command, shell=True, capture_output=True, text=True, check=False)
    assert done.stderr == ""
    assert "peak memory" in done.stdout


def test_onnx_is_needed_only_when_a_model_is_read():
    script = "import sys, tightship; assert 'onnx' not in sys.modules"
    subprocess.run([sys.executable, "-c", script], check=True)
    assert onnx.__version__


def test_run_profiles_steps_into_a_table_a_trace_and_json(capsys, model_file, tmp_path):
    trace = tmp_path / "trace.json"
    options = ("--shape", "x=4x32", "--repeat", 2, "--profile", "--trace", trace)
    code, out, _ = run(capsys, "run", model_file, *options)
    assert code == 0
    assert "reorders take" in out
    assert max(map(len, out.splitlines())) <= 100
    names = {event["name"] for event in json.loads(trace.read_text())["traceEvents"]}
    _, out, _ = run(capsys, "run", model_file, *options, "--json")
    steps = json.loads(out)["profile"]["steps"]
    assert {step["name"] for step in steps} <= names
    assert all(len(step["ends_ns"]) == 2 for step in steps)


def test_tune_keeps_its_choice_below_the_cache_folder_and_uses_it(
    capsys, model_file, tmp_path, monkeypatch
):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    for _ in range(2):
        code, out, error = run(
            capsys, "plan", model_file, "--shape", "x=4x32", "--json", "--tune"
        )  # fmt: skip
        assert (code, error) == (0, "")
        assert json.loads(out)["key"].get("layouts", "(tuned)").endswith("(tuned)")
    (kept,) = (tmp_path / "cache" / "tightship").iterdir()
    assert len(json.loads(kept.read_text())["choices"]) == 1


def test_a_file_of_choices_that_is_none_is_named_and_a_csv_has_none(capsys, model_file, csv_file):
    shape = ("--shape", "x=4x32")
    code, _, error = run(capsys, "run", model_file, *shape, "--tune", csv_file)
    assert code == 2
    assert f"`{csv_file}` is not a file of tuned choices" in error
    code, _, error = run(capsys, "plan", csv_file, "--tune")
    assert code == 2
    assert "`--tune` is for a model" in error


@pytest.mark.parametrize("batch", [2**31, 2**32, 2**42])
def test_a_batch_that_no_machine_holds_is_planned_all_the_same(capsys, model_file, batch):
    code, out, _ = run(capsys, "plan", model_file, "--shape", f"x={batch}x32", "--json")
    assert code == 0
    assert json.loads(out)["arena_bytes"] >= batch * 4


@pytest.mark.parametrize("command", [("plan",), ("run", "--repeat", "1"), ("cost",)])
def test_a_command_without_a_model_takes_the_resnet_of_the_onnx_package(capsys, command):
    code, out, _ = run(capsys, *command)
    assert code == 0
    assert "light_resnet50.onnx" in out.splitlines()[0]


@pytest.mark.parametrize("threads", ["1025", "2147483647", "99999999999999999999"])
def test_more_threads_than_a_kernel_can_have_are_refused(capsys, model_file, threads):
    for option in ("--threads", "--workers"):
        code, _, err = run(capsys, "run", model_file, "--shape", "x=4x32", option, threads)
        assert code == 2
        assert f"is {threads}; it must be from 1 to 1024" in err


def test_a_program_of_torch_names_what_reads_it(capsys, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", None)
    (tmp_path / "model.pt2").write_bytes(b"")
    code, _, err = run(capsys, "plan", tmp_path / "model.pt2")
    assert code == 2
    assert "pip install 'tightship[torch]'" in err
    assert "nowhere.pt2" in run(capsys, "plan", tmp_path / "nowhere.pt2")[2]


def test_outputs_that_a_file_is_in_the_way_of_are_refused_before_the_run(capsys, model_file):
    code, out, err = run(capsys, "run", model_file, "--shape", "x=4x32", "-o", model_file)
    assert (code, out) == (2, "")
    assert f"`{model_file}` is a file; name another" in err


def test_an_error_without_a_number_says_its_text(capsys, csv_file, monkeypatch):
    monkeypatch.setattr(place_command, "run", Mock(side_effect=ChildProcessError("It ended.")))
    assert run(capsys, "place", csv_file) == (2, "", "tightship: It ended.\n")
