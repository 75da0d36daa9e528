"""Pages of `tightship view`: beside another plan, for several lengths, with a measurement."""

import json
import re
from pathlib import Path

import pytest

from tests.models import conv_net
from tests.small_models import dense
from tightship.cli import main


@pytest.fixture(autouse=True)
def models(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "small.onnx").write_bytes(dense(batch=4)[0])
    (tmp_path / "large.onnx").write_bytes(dense(batch=4, hidden=65536)[0])
    (tmp_path / "open.onnx").write_bytes(dense()[0])
    (tmp_path / "net.onnx").write_bytes(conv_net().SerializeToString())
    (tmp_path / "buffers.csv").write_text("id,lower,upper,size\na,0,2,64\nb,1,3,128\n")


def view(*arguments):
    return main(["view", *arguments, "-o", "page.html"])


def page():
    return Path("page.html").read_text(encoding="utf-8")


def data():
    return json.loads(re.search(r'id="plan">(.*?)</script>', page(), re.DOTALL)[1])


def test_a_plan_is_laid_over_an_older_one_of_a_model_or_a_file(capsys):
    assert view("large.onnx", "--diff", "small.onnx") == 0
    values = data()
    assert values["old"]["total"] < values["total"]
    assert len(values["pairs"]) == len(values["names"])
    assert "What moved the peak" in page()
    assert main(["plan", "small.onnx", "-o", "small.json"]) == 0
    assert view("large.onnx", "--diff", "small.json") == 0
    assert data()["old"] == values["old"]
    assert "Old plan: small.json" in page()
    capsys.readouterr()


def test_two_shapes_of_one_model_are_laid_over_one_another():
    assert (
        view("open.onnx", "--shape", "batch=64", "--diff", "open.onnx", "--old-shape", "batch=1")
        == 0
    )
    assert data()["old"]["sizes"] < data()["sizes"]


def test_a_difference_is_drawn_as_it_is_printed(capsys):
    assert main(["plan", "--diff", "small.onnx", "large.onnx", "-o", "diff.html"]) == 1
    assert "peak memory: " in capsys.readouterr().out
    assert "What moved the peak" in Path("diff.html").read_text()
    assert main(["plan", "--diff", "small.onnx", "large.onnx", "-o", "diff.svg"]) == 2
    assert "write .html, not `diff.svg`" in capsys.readouterr().err


def test_plans_of_buffers_are_compared_by_name():
    Path("longer.csv").write_text("id,lower,upper,size\na,0,3,64\nc,1,3,128\n")
    assert view("longer.csv", "--diff", "buffers.csv") == 0
    assert data()["pairs"] == [0, -1]


def test_lengths_are_planned_for_an_open_model():
    assert view("open.onnx", "--shape", "batch=4") == 0
    assert [each["length"] for each in data()["lengths"]] == [4, 8, 16, 32]
    assert view("open.onnx", "--length", "batch=1,16,64") == 0
    values = data()
    assert values["lengthName"] == "batch"
    assert [each["length"] for each in values["lengths"]] == [1, 16, 64]
    own = [each["plan"] is None for each in values["lengths"]]
    assert own == [True, False, False]
    assert values["lengths"][2]["plan"]["arena"] > values["arena"]
    assert view("open.onnx", "--length", "batch=") == 0
    assert "lengths" not in data()


def test_lengths_are_doubled_if_none_are_named():
    assert view("open.onnx") == 0
    assert [each["length"] for each in data()["lengths"]] == [1, 2, 4, 8]
    assert view("net.onnx") == 0
    assert "lengths" not in data()


@pytest.mark.parametrize("kind", ["json", "trace"])
def test_a_measurement_of_the_model_is_read(capsys, kind):
    assert view("net.onnx") == 0
    count = len(data()["stepNames"])
    capsys.readouterr()
    if kind == "json":
        assert main(["run", "net.onnx", "--profile", "--json", "--repeat", "3"]) == 0
        Path("run.json").write_text(capsys.readouterr().out)
    else:
        assert main(["run", "net.onnx", "--trace", "run.json", "--repeat", "3"]) == 0
    assert view("net.onnx", "--measured", "run.json") == 0
    times = data()["times"]
    assert len(times) == count
    assert all(isinstance(each, int) and each >= 0 for each in times)
    assert sum(times) > 0
    assert ("most that was resident" in page()) == (kind == "json")


def test_a_saved_plan_of_a_model_is_drawn_with_its_steps(capsys):
    assert main(["plan", "net.onnx", "-o", "net.json"]) == 0
    assert view("net.json") == 0
    saved = data()
    assert view("net.onnx") == 0
    assert saved["operators"] == data()["operators"]
    capsys.readouterr()


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["open.onnx", "--length", "bath=1,2"], "no open length `bath`; it has `batch`"),
        (["small.onnx", "--length", "batch=1,2"], "leave it out"),
        (["small.onnx", "--old-shape", "x=1x32"], "`--old-shape` is for `--diff OLD`"),
        (["open.onnx", "--diff", "small.onnx", "--length", "batch=2"], "does not go with `--diff`"),
        (["small.onnx", "--diff", "no.onnx"], "no.onnx"),
        (["small.onnx", "--measured", "no.json"], "no.json"),
        (["small.onnx", "--measured", "buffers.csv"], "`buffers.csv` is not a measurement"),
        (["small.onnx", "--measured", "other.json"], "has 99 steps and the plan"),
        (["small.onnx", "--measured", "empty.json"], "is not a measurement"),
    ],
)
def test_what_does_not_fit_is_refused(capsys, arguments, said):
    Path("other.json").write_text(json.dumps({"steps": [{"median_ns": 1}] * 99}))
    Path("empty.json").write_text("{}")
    assert view(*arguments) == 2
    assert said in capsys.readouterr().err
    assert not Path("page.html").exists()


@pytest.mark.parametrize("option", [["--diff", "small.onnx"], ["--measured", "x.json"]])
def test_a_still_picture_shows_one_plan_alone(capsys, option):
    assert main(["view", "small.onnx", *option, "-o", "page.svg"]) == 2
    assert "write it as .html, not `page.svg`" in capsys.readouterr().err
