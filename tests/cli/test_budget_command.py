import json

import pytest

from tests.small_models import dense
from tightship.cli import main

BUDGETS = """
[[budget]]
model = "model.onnx"
limit = "64MiB"
shapes = {batch = 8}

[[budget]]
name = "wide"
model = "model.onnx"
limit = "40MiB"
shapes = {batch = 65536}
"""


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "model.onnx").write_bytes(dense()[0])
    (tmp_path / "tightship.toml").write_text(BUDGETS)
    return tmp_path


def run(capsys, *arguments):
    code = main(["budget", *arguments])
    said = capsys.readouterr()
    return code, said.out, said.err


def test_an_exceeded_budget_is_told_by_the_exit_code(capsys, folder):
    code, out, _ = run(capsys, "check")
    assert code == 1
    assert out.startswith("1 of 2 budgets exceeded, planned for avx2\n")
    code, out, _ = run(capsys, "check", "--json")
    values = json.loads(out)
    assert (code, [each["fits"] for each in values["budgets"]]) == (1, [True, False])
    (folder / "tightship.toml").write_text(BUDGETS.replace("40MiB", "1GiB"))
    assert run(capsys, "check", "tightship.toml")[0] == 0


def test_a_lock_file_says_what_is_planned(capsys, folder):
    assert run(capsys, "lock")[0] == 0
    before = (folder / "tightship.lock").read_bytes()
    assert run(capsys, "lock", "--check")[0] == 0
    (folder / "tightship.toml").write_text(BUDGETS.replace("batch = 8}", "batch = 9}"))
    code, out, _ = run(capsys, "lock", "--check")
    assert code == 1
    assert "model.onnx batch=9" in out
    assert (folder / "tightship.lock").read_bytes() == before


def test_a_lock_file_can_lie_elsewhere(capsys, folder):
    assert run(capsys, "lock", "-o", "other.lock", "--isa", "avx2")[0] == 0
    assert not (folder / "tightship.lock").exists()
    assert run(capsys, "lock", "--check", "-o", "other.lock")[0] == 0


@pytest.mark.parametrize("arguments", [["check", "no.toml"], ["lock", "--check"]])
def test_missing_files_are_bad_usage(capsys, arguments):
    code, out, err = run(capsys, *arguments)
    assert (code, out) == (2, "")
    assert "does not exist" in err


def test_an_unknown_instruction_set_is_bad_usage(capsys):
    with pytest.raises(SystemExit) as caught:
        main(["budget", "check", "--isa", "sse41"])
    assert caught.value.code == 2
    assert "invalid choice: 'sse41'" in capsys.readouterr().err
