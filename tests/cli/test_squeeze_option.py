"""Tests `tightship cost --frontier`: a table, JSON, a picture, and the exit code of a budget."""

import json

import pytest

from tests.cli.test_cost_command import run
from tests.cost.test_frontier import products
from tests.models import mlp


@pytest.fixture(scope="module")
def chain_file(tmp_path_factory):
    path = tmp_path_factory.mktemp("chain") / "chain.onnx"
    path.write_bytes(products(12).model)
    return path


@pytest.fixture(scope="module")
def short_file(tmp_path_factory):
    """A chain whose frontier is found in a moment."""
    path = tmp_path_factory.mktemp("chain") / "short.onnx"
    path.write_bytes(products(6).model)
    return path


def test_a_table_of_budgets_is_printed(capsys, short_file):
    code, out, _ = run(capsys, short_file, "--frontier")
    assert code == 0
    assert "training, within" in out
    assert "inference, within" in out
    assert "MatMul" in out
    _, out, _ = run(capsys, short_file, "--frontier", "--forward-only")
    assert "training, within" not in out


def test_json_has_the_plans_of_both_passes(capsys, short_file):
    code, out, _ = run(capsys, short_file, "--frontier", "--squeeze", "40%", "--json")
    assert code == 0
    training, inference = json.loads(out)["frontier"]
    assert (training["pass"], inference["pass"]) == ("training", "inference")
    (chosen,) = (point for point in training["points"] if point["chosen"])
    assert chosen["peak_bytes"] <= training["budget_bytes"]
    assert chosen["again"]["MatMul"] > 0
    assert training["points"][0]["peak_bytes"] > chosen["peak_bytes"]


@pytest.mark.parametrize("suffix", [".svg", ".html"])
def test_the_picture_marks_the_plan_of_the_budget(capsys, short_file, tmp_path, suffix):
    picture = tmp_path / f"frontier{suffix}"
    assert run(capsys, short_file, "--frontier", "--squeeze", "40%", "-o", picture)[0] == 0
    text = picture.read_text()
    assert text.count("chosen: ") == 1
    assert "operations against bytes" in text


@pytest.mark.parametrize(("budget", "code"), [("64KiB", 0), ("20KiB", 1), ("49KiB", 3)])
def test_the_exit_code_tells_a_proof_from_a_search_that_ended(capsys, chain_file, budget, code):
    assert run(capsys, chain_file, "--frontier", "--squeeze", budget)[0] == code
    assert run(capsys, chain_file, "--squeeze", budget)[0] == code


def test_training_is_told_in_as_much_detail_as_inference(capsys, chain_file, tmp_path):
    code, out, _ = run(capsys, chain_file, "--max-memory", "1MiB", "--training", "--json")
    assert code == 0
    values = json.loads(out)
    step = values["training_step"]
    assert step.keys() >= {"levers", "schemes", "imperative", "peak_step", "live_at_peak"}
    assert step["total_bytes"] > values["total_bytes"]
    assert step["imperative_references_held"]["peak_live_bytes"] > values["training"][0][
        "naive_bytes"
    ] // 2  # fmt: skip
    picture = tmp_path / "step.svg"
    assert run(capsys, chain_file, "--training", "-o", picture)[0] == 0
    assert "training, graph bytes" in picture.read_text()
    limit = str(step["total_bytes"] - 1)
    assert run(capsys, chain_file, "--max-memory", limit)[0] == 0
    assert run(capsys, chain_file, "--max-memory", limit, "--training")[0] == 1


def test_the_largest_batch_of_a_training_step_fits_and_the_next_does_not(capsys, tmp_path):
    path = tmp_path / "mlp.onnx"
    path.write_bytes(mlp().SerializeToString())
    limit = ("--max-memory", "1MiB", "--training")
    _, out, _ = run(capsys, path, *limit, "--json")
    values = json.loads(out)
    largest = values["largest_training_batch"]
    assert 1 <= largest < values["largest_batch"]
    assert run(capsys, path, "--batch", largest, *limit)[0] == 0
    code, out, _ = run(capsys, path, "--batch", largest + 1, *limit)
    assert code == 1
    assert f"does not fit 1.00 MiB; largest batch: {largest:,}" in out


def test_a_step_that_is_left_out_cannot_be_drawn(capsys, chain_file):
    code, _, err = run(capsys, chain_file, "--training", "--forward-only")
    assert code == 2
    assert "leave out `--forward-only`" in err


def test_the_step_is_shown_and_squeezed_in_bfloat16(capsys, chain_file):
    steps = []
    for precision in ("float32", "bfloat16"):
        asked = ("--precision", precision, "--squeeze", "--max-memory", "1MiB", "--json")
        code, out, _ = run(capsys, chain_file, *asked)
        assert code == 0
        steps.append(json.loads(out))
    whole, half = steps
    assert half["training_precision"] == "bfloat16"
    assert half["inference"] == whole["inference"]
    rows = [step["training"][0]["arena_bytes"] for step in steps]
    assert rows[1] < 0.7 * rows[0]
    assert half["squeeze"]["reordered_bytes"] < 0.7 * whole["squeeze"]["reordered_bytes"]
    _, out, _ = run(capsys, chain_file, "--precision", "bfloat16")
    assert "values wait for late readers in bfloat16" in out


def test_a_precision_without_a_training_step_is_refused(capsys, chain_file):
    code, _, err = run(capsys, chain_file, "--precision", "bfloat16", "--forward-only")
    assert code == 2
    assert "leave out `--forward-only`" in err
