"""`tightship prepare`, and other commands on what it wrote."""

import json
from pathlib import Path

import pytest

from tests.small_models import dense
from tightship.cli.main import main
from tightship.cli.prepare_command import shape_sets
from tightship.errors import InputError


@pytest.fixture
def prepared(tmp_path: Path) -> Path:
    source, path = tmp_path / "dense.onnx", tmp_path / "dense.tship"
    source.write_bytes(dense()[0])
    shapes = ["--shape", "x=4x32", "--shape", "x=8x32"]
    assert main(["prepare", str(source), "-o", str(path), *shapes]) == 0
    source.unlink()
    return path


@pytest.mark.parametrize("command", ["plan", "run", "verify"])
def test_commands_take_a_prepared_model(
    command: str, prepared: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    capsys.readouterr()
    assert main([command, str(prepared), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)


def test_plan_holds_a_prepared_model_against_a_limit(prepared: Path) -> None:
    assert main(["plan", str(prepared), "--max-memory", "1MiB"]) == 1


def test_a_damaged_weight_is_found_by_verify(
    prepared: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    content = bytearray(prepared.read_bytes())
    content[4096 + 5] ^= 1
    prepared.write_bytes(content)
    assert main(["verify", str(prepared)]) == 2
    assert "does not match its checksum" in capsys.readouterr().err


def test_nothing_is_left_to_tune(prepared: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", str(prepared), "--tune", "choices.json"]) == 2
    assert "`tune` is for the ONNX file" in capsys.readouterr().err


def test_shapes_of_one_name_are_for_programs_of_their_own() -> None:
    given = [("a", (1,)), ("b", (2,)), ("a", (3,))]
    assert shape_sets(given) == [{"a": (1,), "b": (2,)}, {"a": (3,), "b": (2,)}]


def test_inputs_given_unequally_often_are_refused() -> None:
    with pytest.raises(InputError, match="`--shape b"):
        shape_sets([("a", (1,)), ("a", (2,)), ("a", (3,)), ("b", (1,)), ("b", (2,))])
