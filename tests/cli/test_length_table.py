import json

import pytest

from tests.small_models import cell, dense
from tightship.cli import main


@pytest.fixture(autouse=True)
def models(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "open.onnx").write_bytes(dense()[0])
    (tmp_path / "fixed.onnx").write_bytes(cell())


def run(capsys, *arguments):
    code = main(["plan", *arguments])
    said = capsys.readouterr()
    return code, said.out, said.err


def test_a_plan_of_open_lengths_says_what_it_is_for(capsys):
    code, out, _ = run(capsys, "open.onnx", "--shape", "batch=65536")
    lines = out.splitlines()
    at = lines.index("Planned for batch 65536")
    assert (code, lines[at + 1].startswith("grows ")) == (0, True)
    assert lines[at + 1].endswith(" per 65536 of batch")
    rows = [line.split() for line in lines[at + 5 :]]
    assert [row[0] for row in rows] == ["65536", "131072", "262144", "524288", "1048576"]
    assert [len(row[-1]) for row in rows] == sorted(len(row[-1]) for row in rows)
    assert len(rows[-1][-1]) == 40


def test_lengths_that_are_not_given_are_chosen_and_named(capsys):
    code, out, _ = run(capsys, "open.onnx")
    assert code == 0
    assert "Planned for batch 1 (chosen; give others by --shape NAME=N)\n" in out
    assert run(capsys, "open.onnx", "--max-memory", "1GiB")[0] == 2


def test_an_unknown_pass_is_not_taken_for_lengths_that_do_not_fit(capsys):
    code, out, err = run(capsys, "open.onnx", "--without", "wishes")
    assert (code, out) == (2, "")
    assert err.startswith("tightship: Unknown pass `wishes`; choose from ")


def test_choices_of_passes_are_those_of_the_table(capsys):
    peaks = []
    for choice in ((), ("--without", "fuse_activation")):
        code, out, _ = run(capsys, "open.onnx", "--shape", "batch=65536", *choice, "--json")
        found = json.loads(out)
        (lengths,) = found["open_lengths"]
        assert code == 0
        assert lengths["peaks"][0]["peak_bytes"] == found["peak_bytes"]
        peaks.append(found["peak_bytes"])
    assert peaks[0] < peaks[1]


def test_the_largest_length_that_a_limit_holds_is_told(capsys):
    code, out, _ = run(capsys, "open.onnx", "--shape", "batch=8", "--max-memory", "64MiB")
    assert code == 0
    assert "64.0 MiB holds a batch of " in out
    code, out, err = run(capsys, "open.onnx", "--shape", "batch=8", "--max-memory", "1MiB")
    assert code == 1
    assert "1.00 MiB holds no batch" in out
    assert "Raise the limit" in err


def test_json_has_the_peaks(capsys):
    shape = ("--shape", "batch=8", "--json")
    values = json.loads(run(capsys, "open.onnx", *shape, "--max-memory", "64MiB")[1])
    (found,) = values["open_lengths"]
    assert (found["name"], found["length"], found["peaks"][0]["length"]) == ("batch", 8, 8)
    assert found["peaks"][0]["peak_bytes"] == values["peak_bytes"]
    assert found["largest"] > 8


def test_a_model_of_fixed_lengths_has_no_table(capsys):
    assert "Planned for" not in run(capsys, "fixed.onnx")[1]
