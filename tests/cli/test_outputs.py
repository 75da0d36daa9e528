"""Files and terminals that commands write to: no model is overwritten, no cursor is moved."""

import shutil
from argparse import Namespace

import pytest

from tests.small_models import dense
from tightship.cli import main
from tightship.cli.process import Usage
from tightship.cli.share_command import Measured, _text

MIB = 1 << 20
MOVING = "new\x1b[2J.onnx"


@pytest.fixture
def model(tmp_path):
    path = tmp_path / "dense.onnx"
    path.write_bytes(dense(batch=4)[0])
    return path


def test_a_trace_does_not_take_the_place_of_the_model(capsys, model):
    before = model.read_bytes()
    assert main(["run", str(model), "--trace", str(model)]) == 2
    assert "Cannot write a trace as `dense.onnx`" in capsys.readouterr().err
    assert model.read_bytes() == before


def test_an_input_that_is_another_kind_of_file_comes_without_advice_to_trust_it(capsys, model):
    assert main(["run", str(model), "--input", f"x={model}"]) == 2
    said = capsys.readouterr().err
    assert f"`{model}` is not an array as `np.save` writes it.\n" in said


def test_a_name_moves_no_cursor(capsys, model, tmp_path):
    moving = tmp_path / MOVING
    shutil.copy(model, moving)
    assert main(["plan", str(tmp_path / f"no{MOVING}")]) == 2
    assert main(["run", str(moving), "--max-memory", "1KiB"]) == 1
    assert main(["view", str(moving), "-o", str(moving.with_suffix(".svg"))]) == 0
    said = capsys.readouterr()
    assert "\x1b" not in said.out + said.err
    assert "new?[2J.svg" in said.out


def test_peers_that_failed_are_not_called_the_leanest_and_fit_a_terminal():
    def measured(title, size_bytes):
        return Measured(title, [Usage(size_bytes, size_bytes, size_bytes)], [1], 1)

    options = Namespace(procs=1, start="spawn", threads=1, file="m.onnx")
    found = [measured("Tightship", 10 * MIB), measured("ONNX Runtime, default", 20 * MIB)]
    text = _text(options, found, [("ONNX Runtime, its prepacked file", "missing: " + "x" * 500)])
    assert "0.50 of the PSS of the leanest other: ONNX Runtime, default." in text
    assert max(map(len, text.splitlines())) <= 100
