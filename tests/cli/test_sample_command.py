"""`tightship sample` lists networks, and writes one."""

import json
from pathlib import Path

import pytest

from tightship.cli import main
from tightship.sample import SAMPLES, sample


def test_networks_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["sample"]) == 0
    text = capsys.readouterr().out
    assert all(name in text for name in SAMPLES)
    assert max(map(len, text.splitlines())) <= 100
    assert main(["sample", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == dict(SAMPLES)


def test_a_network_is_written_in_the_place_of_another(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "net.onnx"
    file.write_text("what was there")
    assert main(["sample", "mlp", "-o", str(file), "--seed", "4"]) == 0
    assert file.read_bytes() == sample("mlp", 4)
    assert capsys.readouterr().out == f"wrote {file}, 427.9 KiB\n"
    assert main(["sample", "mlp", "-o", str(file), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found == {"network": "mlp", "file": str(file), "size_bytes": file.stat().st_size}
    assert main(["plan", str(file), "--shape", "batch=2"]) == 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["vgg", "-o", "x.onnx"], "`vgg` is not a sample network"),
        (["mlp", "-o", "missing/x.onnx"], "missing/x.onnx"),
        (["mlp", "-o", "x.onnx", "--seed", "-1"], "The seed is -1"),
    ],
)
def test_bad_arguments_are_named(
    arguments: list[str],
    message: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["sample", *arguments]) == 2
    assert message in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["mlp"], "name the file to write: tightship sample mlp -o FILE"),
        (["-o", "x.onnx"], "-o names a file, but no network was named"),
    ],
)
def test_a_network_and_a_file_go_together(
    arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit, match="2"):
        main(["sample", *arguments])
    assert message in capsys.readouterr().err
