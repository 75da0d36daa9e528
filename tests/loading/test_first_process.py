"""The first process of `share=True`, which has the file prepared, stays inside the file's plan."""

import json
import signal
import subprocess
import sys
from pathlib import Path

import pytest

import tightship
from tests.small_models import dense
from tests.zoo.decoder import decoder
from tightship.errors import GraphError

SCRIPT = """
import json, pathlib, resource, sys
import numpy as np
import tightship

def status(field):
    with open("/proc/self/status") as lines:
        return next(int(n.split()[1]) << 10 for n in lines if n.startswith(field + ":"))

path, shapes, data_limit, as_bytes = json.loads(sys.argv[1])
model = pathlib.Path(path).read_bytes() if as_bytes else path
before = {"resident": status("VmRSS"), "data": status("VmData")}
if data_limit:
    limit = before["data"] + data_limit
    resource.setrlimit(resource.RLIMIT_DATA, (limit, limit))
with tightship.load(model, shapes=shapes, share=True, max_memory="1GiB") as model:
    inputs = {n: np.zeros(shape, dtype.numpy) for n, (dtype, shape) in model.input_types.items()}
    for _ in range(3):
        model.run(inputs)
    gained = status("VmHWM") - before["resident"]
    print(json.dumps([model.plan.peak_bytes, gained, "onnx" in sys.modules]))
"""


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of prepared models; bytecode is kept, as users have it."""
    monkeypatch.delenv("PYTHONDONTWRITEBYTECODE", raising=False)
    monkeypatch.setenv("PYTHONPYCACHEPREFIX", str(tmp_path / "bytecode"))
    monkeypatch.setenv("TIGHTSHIP_CACHE_DIR", str(tmp_path / "prepared"))
    return tmp_path / "prepared"


def first(folder: Path, *arguments: object) -> tuple[int, int, bool]:
    subprocess.run(["rm", "-rf", str(folder)], check=True)
    command = [sys.executable, "-W", "error", "-c", SCRIPT, json.dumps(arguments)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    planned, gained, reads_onnx = json.loads(done.stdout)
    return planned, gained, reads_onnx


def written(name: str, path: Path) -> dict[str, object]:
    """Write a model, and return its shapes."""
    if name == "decoder":
        case = decoder()
        path.write_bytes(case.model)
        return {name: array.shape for name, array in case.feeds.items()}
    path.write_bytes(dense(hidden=1 << 13)[0])
    return {"batch": 3} if name == "named" else {"x": (3, 32)}


@pytest.mark.parametrize("as_bytes", [False, True])
@pytest.mark.parametrize("name", ["dense", "named", "decoder"])
def test_it_stays_inside_its_plan(folder: Path, tmp_path: Path, name: str, as_bytes: bool) -> None:
    path = tmp_path / "model.onnx"
    shapes = written(name, path)
    planned, _, _ = first(folder, str(path), shapes, None, as_bytes)
    _, gained, reads_onnx = first(folder, str(path), shapes, None, as_bytes)
    assert gained <= planned
    assert not reads_onnx


@pytest.mark.parametrize("name", ["dense", "decoder"])
def test_a_limit_on_data_holds_what_prepares_too(folder: Path, tmp_path: Path, name: str) -> None:
    """The process that prepares has the same limit, and needs some MiB more than the plan."""
    path = tmp_path / "model.onnx"
    shapes = written(name, path)
    planned, _, _ = first(folder, str(path), shapes, None, False)
    _, gained, _ = first(folder, str(path), shapes, planned + (4 << 20), False)
    assert gained <= planned


def test_a_file_prepared_apart_is_that_which_is_prepared_here(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, files = tmp_path / "model.onnx", []
    shapes = written("dense", path)
    for executable in (sys.executable, ""):
        monkeypatch.setattr(sys, "executable", executable)
        told: list[tuple[int, int]] = []
        given = {"shapes": shapes, "progress": lambda *figures, told=told: told.append(figures)}
        with tightship.load(path, share=True, **given):
            (file,) = folder.glob("*/model.tship")
            files.append((file.read_bytes(), told))
        file.unlink()
    assert files[0] == files[1]
    assert files[0][1]


def test_errors_are_those_of_preparing_here(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    content = dense(hidden=64)[0].replace(b"MatMul", b"Marble")
    texts = set()
    for executable in (sys.executable, ""):
        monkeypatch.setattr(sys, "executable", executable)
        with pytest.raises(GraphError, match="Marble") as raised:
            tightship.load(content, shapes={"x": (3, 32)}, share=True)
        texts.add(str(raised.value))
    assert len(texts) == 1
    assert [file.name for file in folder.glob("*/*")] == ["lock"]


INTERRUPTED = """
import os, sys, signal, tightship
def interrupt(done, total):
    print("packing", flush=True)
    os.kill(os.getpid(), signal.SIGINT)
tightship.load(sys.argv[1], shapes={"x": (3, 32)}, share=True, progress=interrupt)
"""


def test_an_interrupt_leaves_no_file(folder: Path, tmp_path: Path) -> None:
    path = tmp_path / "model.onnx"
    written("dense", path)
    command = [sys.executable, "-c", INTERRUPTED, str(path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode in (-signal.SIGINT, 128 + signal.SIGINT)
    assert done.stderr.count("Traceback") == 1
    assert [file.name for file in folder.glob("*/*") if file.parent.name != "known"] == ["lock"]
