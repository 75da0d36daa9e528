"""`tightship share`: one copy of the weights, seen in what the kernel counts."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

import tightship
from tests.small_models import dense
from tests.test_imported import FRAMEWORKS
from tightship.cli import main

HIDDEN = 1 << 16
COMMAND = (sys.executable, "-m", "tightship.cli", "share")


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Weights of more than 10 MiB."""
    path = tmp_path_factory.mktemp("model") / "dense.onnx"
    path.write_bytes(dense(batch=1, hidden=HIDDEN)[0])
    return path


def shared(capsys: pytest.CaptureFixture[str], *arguments: object) -> dict:
    assert main(["share", *map(str, arguments), "--json"]) == 0
    return json.loads(capsys.readouterr().out)


@pytest.mark.parametrize("start", ["spawn", "fork", "forkserver"])
def test_processes_have_one_copy_of_the_weights(capsys, model: Path, start: str) -> None:
    found = shared(capsys, model, "--procs", 3, "--start", start, "--no-peers")
    (ours,) = found["contenders"]
    assert len(ours["processes"]) == 3
    weights = tightship.plan(model).weights_bytes
    assert all(each["rss_bytes"] > weights for each in ours["processes"])
    assert all(each["pss_bytes"] >= each["uss_bytes"] for each in ours["processes"])
    assert 0.9 * weights < ours["file_pss_bytes"] < 1.1 * weights
    assert ours["pss_bytes"] == sum(each["pss_bytes"] for each in ours["processes"])
    assert len(ours["first_ns"]) == 3


def test_a_prepared_model_is_measured_as_it_is(capsys, model: Path, tmp_path: Path) -> None:
    prepared = tmp_path / "dense.tship"
    tightship.prepare(model, prepared)
    content = prepared.read_bytes()
    (ours,) = shared(capsys, prepared, "--procs", 2)["contenders"]
    assert 0.9 * len(content) < ours["file_pss_bytes"] < 1.1 * len(content)
    assert prepared.read_bytes() == content


def test_onnxruntime_is_measured_beside_it(capsys, model: Path) -> None:
    pytest.importorskip("onnxruntime")
    found = shared(capsys, model, "--procs", 2, "--peers")
    assert found["failed"] == {}
    ours, *others = found["contenders"]
    assert [each["title"] for each in others] == [
        "ONNX Runtime, default",
        "ONNX Runtime, weights in a file, unpacked",
        "ONNX Runtime, its prepacked file",
    ]
    assert all(each["run_ns"] > 0 for each in found["contenders"])
    assert ours["pss_bytes"] < min(each["pss_bytes"] for each in others)


def test_the_tables_fit_a_terminal(capsys, model: Path) -> None:
    assert main(["share", str(model), "--procs", "2", "--no-peers"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("dense.onnx in 2 processes (spawn), 1 thread(s) each")
    assert max(map(len, lines)) <= 100
    assert [line.split()[0] for line in lines if line.strip()[:1].isdigit()] == ["1", "2"]


def test_a_model_that_is_none_is_said_to_be(capsys, tmp_path: Path) -> None:
    assert main(["share", str(tmp_path / "none.onnx")]) == 2
    assert "does not exist" in capsys.readouterr().err
    (tmp_path / "text.onnx").write_text("text")
    assert main(["share", str(tmp_path / "text.onnx")]) == 2
    assert "Tightship, preparing: `" in capsys.readouterr().err


def test_a_prepared_model_has_no_peers(capsys, tmp_path: Path) -> None:
    (tmp_path / "a.tship").write_bytes(b"")
    assert main(["share", str(tmp_path / "a.tship"), "--peers"]) == 2
    assert "ONNX Runtime reads no prepared model" in capsys.readouterr().err


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupt_leaves_no_files(model: Path, tmp_path: Path, number: int) -> None:
    environment = {**os.environ, "TMPDIR": str(tmp_path)}
    with subprocess.Popen([*COMMAND, model], env=environment) as process:
        while process.poll() is None and not list(tmp_path.glob("*/*")):
            pass  # until it has begun to prepare
        process.send_signal(number)
    assert process.returncode == 130
    assert list(tmp_path.iterdir()) == []


def test_a_worker_of_onnxruntime_does_not_import_tightship() -> None:
    code = "import runpy, sys; runpy.run_path(sys.argv[1], run_name='x'); print(*sys.modules)"
    from tightship.cli import worker

    done = subprocess.run(
        [sys.executable, "-P", "-c", code, worker.__file__],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert set(done.stdout.split()) & {"tightship", "numpy", *FRAMEWORKS} == set()
