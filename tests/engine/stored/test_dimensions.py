"""Lengths by name for prepared models."""

import shlex
from pathlib import Path

import numpy as np
import pytest

import tightship
from tests.engine.stored.files import parts_of
from tests.models import parse
from tests.small_models import dense
from tightship.cli.main import main
from tightship.engine.stored.dimensions import read_dimensions, with_lengths
from tightship.engine.stored.fields import MalformedError
from tightship.errors import FormatError, InputError

KEYS = ((("x", (4, 32)),), (("x", (8, 32)),))


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "model.tship"
    (tmp_path / "model.onnx").write_bytes(dense()[0])
    tightship.prepare(tmp_path / "model.onnx", path, shapes=[{"batch": 4}, {"batch": 8}])
    return path


def test_a_length_by_name_chooses_the_program(file: Path) -> None:
    assert tightship.plan(file, shapes={"batch": 8}).inputs == {"x": "8x32 float32"}
    assert tightship.plan(file).inputs == {"x": "4x32 float32"}
    with tightship.load(file, shapes={"batch": 8}) as model:
        assert model(np.zeros((8, 32), np.float32)).shape == (8, 8)
    assert main(["plan", str(file), "--shape", "batch=8"]) == 0
    assert main(["run", str(file), "--shape", "batch=8", "--repeat", "1"]) == 0


def test_a_length_that_was_not_prepared_is_refused_with_the_command(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    refused = pytest.raises(InputError, match=r"not for `x` \[3, 32\]. Prepare it for these too")
    with refused as found:
        tightship.load(file, shapes={"batch": 3})
    monkeypatch.chdir(file.parent)
    assert main(shlex.split(str(found.value).split("`")[-4])[1:]) == 0
    assert tightship.plan(file, shapes={"batch": 3}).inputs == {"x": "3x32 float32"}


def test_unknown_names_and_contradictions_are_named(file: Path) -> None:
    with pytest.raises(InputError, match=r"dimension `seq`; the inputs are x; named .*: batch"):
        tightship.plan(file, shapes={"seq": 3})
    with pytest.raises(InputError, match="The lengths `batch` 4 are not those of the shapes"):
        tightship.plan(file, shapes={"x": (8, 32), "batch": 4})
    assert tightship.plan(file, shapes={"x": (8, 32), "batch": 8}).inputs["x"] == "8x32 float32"


def test_one_length_of_several_is_enough(tmp_path: Path) -> None:
    model = parse("m (float[a, b] x, float[a, b] y) => (float[a, b] z) { z = Add (x, y) }")
    sets = [{"a": a, "b": b} for a, b in ((1, 2), (1, 5), (3, 5))]
    tightship.prepare(model.SerializeToString(), tmp_path / "m.tship", shapes=sets)
    plan = tightship.plan(tmp_path / "m.tship", shapes={"b": 5})
    assert plan.inputs == {"x": "1x5 float32", "y": "1x5 float32"}


def test_a_file_without_names_says_what_to_do(file: Path) -> None:
    parts = parts_of(file.read_bytes())
    assert parts.text.pop("dimensions") == {"x": ["batch", 32]}
    file.write_bytes(parts.assembled())
    assert tightship.plan(file, shapes={"x": (8, 32)}).inputs == {"x": "8x32 float32"}
    with pytest.raises(InputError, match=r"earlier version wrote it.*`tightship prepare .*x=4x32"):
        tightship.plan(file, shapes={"batch": 8})


@pytest.mark.parametrize(
    "value",
    [[], {"x": 3}, {"x": [1.5, 32]}, {"x": ["batch"]}, {"x": ["batch", 31]}, {"y": [1, 2]},
     {"x": ["batch", -1]}, {"x": [True, 32]}],
)  # fmt: skip
def test_wrong_values_are_refused(value: object, file: Path) -> None:
    with pytest.raises(MalformedError):
        read_dimensions(value, KEYS)
    parts = parts_of(file.read_bytes())
    parts.text["dimensions"] = value
    file.write_bytes(parts.assembled())
    with pytest.raises(FormatError, match="damaged"):
        tightship.plan(file)


def test_lengths_that_follow_from_others_change_too() -> None:
    declared = {"x": ("past", 2), "mask": ("past + 1", None)}
    key = (("x", (4, 2)), ("mask", (5, 7)))
    assert with_lengths(declared, key, {"past": 9}) == (("x", (9, 2)), ("mask", (10, 7)))
