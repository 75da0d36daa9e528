import json
import re

import pytest

from tests.small_models import dense
from tightship.cli import main


@pytest.fixture(autouse=True)
def models(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "small.onnx").write_bytes(dense(batch=4)[0])
    (tmp_path / "large.onnx").write_bytes(dense(batch=4, hidden=65536)[0])
    (tmp_path / "open.onnx").write_bytes(dense()[0])


def run(capsys, *arguments):
    code = main(["plan", "--diff", *arguments])
    said = capsys.readouterr()
    return code, said.out, said.err


def test_more_memory_is_told_by_the_exit_code(capsys):
    code, out, _ = run(capsys, "small.onnx", "large.onnx")
    assert code == 1
    assert out.startswith("+")
    assert re.search(r"Weight `w2?`: shape, \w*65536\w* float32 instead of", " ".join(out.split()))
    assert run(capsys, "large.onnx", "small.onnx")[0] == 0
    assert run(capsys, "small.onnx", "small.onnx")[0] == 0


def test_a_saved_plan_can_be_compared(capsys):
    assert main(["plan", "small.onnx", "-o", "plan.json"]) == 0
    capsys.readouterr()
    code, out, _ = run(capsys, "plan.json", "large.onnx", "--json")
    values = json.loads(out)
    assert (code, values["cause"]["kind"]) == (1, "shape")
    assert values["change_bytes"] == sum(
        change["new_bytes"] - change["old_bytes"] for change in values["changes"]
    )


def test_two_shapes_of_one_model_are_told_apart(capsys):
    shapes = ("--old-shape", "batch=1", "--shape", "batch=65536")
    code, out, _ = run(capsys, "open.onnx", "open.onnx", *shapes)
    assert code == 1
    assert "peak memory: open.onnx batch=1 to open.onnx batch=65536" in out
    assert "Input `x` is 65536x32 float32 instead of 1x32 float32" in out


def test_prepared_models_can_be_compared(capsys):
    for threads in ("1", "2"):
        assert main(["prepare", "small.onnx", "--threads", threads, "-o", f"t{threads}.tship"]) == 0
    capsys.readouterr()
    code, out, _ = run(capsys, "t1.tship", "t2.tship")
    assert code == 1
    assert "Planned for threads 2 instead of 1" in out


def test_markdown_is_printed(capsys):
    code, out, _ = run(capsys, "small.onnx", "large.onnx", "--markdown")
    assert code == 1
    assert "| part | old | new | change |\n| --- | ---: | ---: | ---: |" in out


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["small.onnx", "no.onnx"], "no.onnx"),
        (["no.json", "small.onnx"], "`no.json`: No such file"),
        (["small.onnx", "large.onnx", "small.onnx"], "names both models; leave `small.onnx` out"),
        (["small.onnx", "large.onnx", "--max-memory", "1GiB"], "`--max-memory` does not go with"),
        (["small.onnx", "large.onnx", "--json", "--markdown"], "does not go with `--json`"),
        (["plan.json", "large.onnx", "--old-shape", "batch=1"], "a plan with its own shapes"),
    ],
)
def test_what_does_not_fit_is_refused(capsys, arguments, said):
    assert main(["plan", "small.onnx", "-o", "plan.json"]) == 0
    capsys.readouterr()
    code, out, err = run(capsys, *arguments)
    assert (code, out) == (2, "")
    assert said in err


@pytest.mark.parametrize("option", [["--markdown"], ["--old-shape", "x=1"]])
def test_options_of_a_difference_need_one(capsys, option):
    assert main(["plan", "small.onnx", *option]) == 2
    assert "is for `--diff OLD NEW`" in capsys.readouterr().err
