"""Products of bfloat16 by the public calls and the command line."""

from pathlib import Path

import numpy as np
import pytest

import tightship
from tests.processor import HAS_BFLOAT16
from tests.zoo.net import Case
from tests.zoo.networks import network
from tightship.cli import main
from tightship.errors import FormatError, InputError

pytestmark = pytest.mark.skipif(not HAS_BFLOAT16, reason="needs products of bfloat16")


@pytest.fixture
def case() -> Case:
    return network("encoder")[0]


@pytest.fixture
def path(case: Case, tmp_path: Path) -> Path:
    found = tmp_path / "encoder.onnx"
    found.write_bytes(case.model)
    return found


def test_results_are_near_in_less_memory_as_planned(path: Path, case: Case) -> None:
    exact = tightship.plan(path)
    plan = tightship.plan(path, precision="bfloat16")
    assert plan.key["precision"] == "bfloat16"
    assert "precision" not in exact.key
    assert "without" not in plan.key
    assert plan.weights_bytes < 0.7 * exact.weights_bytes
    with (
        tightship.load(path, precision="float32") as plain,
        tightship.load(path, precision="bfloat16", max_memory=plan.peak_bytes) as narrow,
    ):
        assert narrow.plan.key == plan.key
        wanted, found = plain.run(case.feeds), narrow.run(case.feeds)
    for name, values in wanted.items():
        apart = np.abs(found[name] - values).max() / np.abs(values).max()
        assert 1e-5 < apart < 5e-2, name


def test_a_prepared_file_keeps_the_type(path: Path, case: Case, tmp_path: Path) -> None:
    ready = tmp_path / "encoder.tship"
    with tightship.load(path, precision="bfloat16") as model:
        wanted = model.run(case.feeds)
    tightship.prepare(path, ready, precision="bfloat16")
    for precision in (None, "bfloat16"):
        with tightship.load(ready, precision=precision) as model:
            found = model.run(case.feeds)
        assert all(np.array_equal(found[name], wanted[name]) for name in wanted)
    with pytest.raises(FormatError, match="prepared for products of bfloat16; here it is"):
        tightship.load(ready, precision="float32")
    tightship.prepare(path, ready)
    with pytest.raises(FormatError, match="--precision bfloat16`"):
        tightship.plan(ready, precision="bfloat16")


def test_commands_take_the_type(
    path: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    ready, narrow = str(tmp_path / "out.tship"), ("--precision", "bfloat16")
    for command in (["plan", str(path)], ["run", str(path)]):
        assert main([*command, *narrow, "--without", "winograd", "--json"]) == 0
        printed = capsys.readouterr().out
        assert '"precision": "bfloat16"' in printed
        assert '"without": "winograd"' in printed
    assert main(["prepare", str(path), "-o", ready, *narrow]) == 0
    assert main(["plan", ready, *narrow]) == 0
    assert main(["plan", ready, "--precision", "float32"]) == 2


def test_unknown_types_are_refused(path: Path) -> None:
    for call in (tightship.plan, tightship.load):
        with pytest.raises(InputError, match="is 'float16'; it must be"):
            call(path, precision="float16")
