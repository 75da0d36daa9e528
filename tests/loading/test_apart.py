"""Models that another process plans: the same in all respects, in less memory."""

import errno
import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from dataclasses import fields
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import ModelProto

import tightship
from tests.models import conv_net, filled, mlp, parse
from tests.small_models import nonzero
from tightship import StopFlag
from tightship.errors import CapacityError, GraphError, InputError
from tightship.loading import apart, unprepared
from tightship.loading.apart import PIECE_BYTES
from tightship.loading.reading_process import ReadingProcess
from tightship.model import Model

SPARED_BYTES = 8 << 20
"""Least bytes by which a process gains less than its plan; some 20 MiB without memory that is
taken for a moment, to open the library."""
LARGE = PIECE_BYTES // 4 + 1000
"""Floats of a weight that is taken over in two pieces."""


def scaled() -> ModelProto:
    text = f"g (float[{LARGE}] x) => (float[{LARGE}] y) {{ z = Mul (x, w) y = Add (z, b) }}"
    return parse(text, w=filled(LARGE), b=filled(1))


@pytest.fixture
def taken(monkeypatch: pytest.MonkeyPatch) -> list[Model | None]:
    """Models taken over, in a process that plans as one that has not imported onnx."""
    found: list[Model | None] = []
    take_over = apart._taken_over

    def noted(*arguments: object) -> Model | None:
        found.append(take_over(*arguments))
        return found[-1]

    monkeypatch.setattr(apart, "_taken_over", noted)
    monkeypatch.setattr(apart, "reads_models", lambda: False)
    return found


@pytest.fixture
def _alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fail where a model is planned in this process."""

    def fail(*_: object) -> None:
        raise AssertionError("it was planned again")

    monkeypatch.setattr(unprepared, "load_anew", fail)


def saved(model: ModelProto | bytes, folder: Path) -> Path:
    path = folder / "model.onnx"
    path.write_bytes(model if isinstance(model, bytes) else model.SerializeToString())
    return path


def inputs_of(model: Model) -> dict[str, np.ndarray]:
    return {name: filled(*shape).astype(dtype.numpy)
            for name, (dtype, shape) in model.input_types.items()}  # fmt: skip


def seen(path: Path, **options: object) -> dict[str, object]:
    """All that a user sees of a model."""
    told: list[tuple[int, int]] = []
    with tightship.load(path, progress=lambda *n: told.append(n), **options) as model:
        plan, inputs = model.plan, inputs_of(model)
        results = model.run(inputs)
        bound = {name: np.empty_like(array) for name, array in results.items()}
        model.bind(inputs, bound).run(StopFlag())
        said = {
            f.name: getattr(plan, f.name)
            for f in fields(plan)
            if f.name not in ("runtime_bytes", "arena")
        }
        rows = {name: list(said[name]) for name in ("steps", "tensors", "weights")}
        return said | rows | {
            "told": told,
            "results": {name: array.tobytes() for name, array in results.items()},
            "bound": {name: array.tobytes() for name, array in bound.items()},
            "packed": [copy.array().tobytes() for copy in model.packed_weights],
            "memory": model.memory_stats(),
            "types": (model.input_types, model.output_types, model.known_output_shapes),
            "open": (model.open_lengths, model.takes_other_shapes),
            "released": model.release_unused_memory(),
        }  # fmt: skip


CASES: dict[str, tuple[Callable[[], ModelProto], dict[str, object]]] = {
    "library": (conv_net, {"dynamic_memory": "1MiB", "max_memory": "1GiB"}),
    "several pieces": (scaled, {}),
    "workers": (conv_net, {"workers": 2, "workers_memory": 0, "shapes": {"x": [1, 3, 8, 8]}}),
}


@pytest.mark.parametrize("name", CASES)
def test_it_is_that_of_planning_here(name: str, tmp_path: Path, taken, monkeypatch) -> None:
    build, options = CASES[name]
    path = saved(build(), tmp_path)
    found = seen(path, **options)
    assert len(taken) == 1
    assert taken[0] is not None
    monkeypatch.setattr(apart, "reads_models", lambda: True)
    assert found == seen(path, **options)
    assert len(taken) == 1


def test_external_data_is_read_beside_the_file(tmp_path: Path, taken, monkeypatch) -> None:
    model, path = scaled(), tmp_path / "model.onnx"
    onnx.save(model, path, save_as_external_data=True, location="w.bin", size_threshold=0)
    monkeypatch.chdir(tmp_path)
    x = filled(LARGE)
    with tightship.load("model.onnx") as loaded:
        np.testing.assert_array_equal(loaded(x), x * filled(LARGE) + filled(1))
    assert len(taken) == 1


BROKEN = conv_net().SerializeToString().replace(b"Relu", b"Rely")


@pytest.mark.parametrize(
    ("content", "options"),
    [(BROKEN, {}), (conv_net().SerializeToString(), {"shapes": {"x": (2, 3, 8, 8)}})],
)
def test_errors_are_those_of_planning_here(content, options, tmp_path, taken, monkeypatch) -> None:
    path, texts = saved(content, tmp_path), set()
    for is_here in (False, True):
        monkeypatch.setattr(apart, "reads_models", lambda is_here=is_here: is_here)
        with pytest.raises((GraphError, InputError)) as raised:
            tightship.load(path, **options)
        texts.add(str(raised.value))
    assert len(texts) == 1
    assert taken == []


@pytest.mark.usefixtures("_alone", "taken")
def test_a_limit_is_refused_once_and_the_one_that_is_named_suffices(tmp_path: Path) -> None:
    path = saved(conv_net(), tmp_path)
    with pytest.raises(CapacityError, match=r"more than the limit of 1\.00 MiB") as large:
        tightship.load(path, max_memory="1MiB")
    with tightship.load(path, max_memory=large.value.needed_bytes) as model:
        assert model.plan.peak_bytes == large.value.needed_bytes


@pytest.mark.usefixtures("_alone", "taken")
def test_progress_that_raises_ends_it(tmp_path: Path) -> None:
    def stop(_done: int, _total: int) -> None:
        raise ValueError("no longer wanted")

    with pytest.raises(ValueError, match="no longer wanted"):
        tightship.load(saved(scaled(), tmp_path), progress=stop)


def test_what_cannot_be_stored_is_planned_here(tmp_path: Path, taken) -> None:
    with tightship.load(saved(nonzero(), tmp_path)) as model:
        assert model(np.eye(1000, dtype=np.float32))[0].shape == (2, 1000)
    assert taken == []


@pytest.fixture
def _refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fail where a process is started."""

    def refuse(_: object) -> None:
        raise AssertionError("a process was started")

    monkeypatch.setattr(ReadingProcess, "start", refuse)


def test_without_room_for_two_processes_it_is_planned_here(tmp_path, taken, monkeypatch) -> None:
    path = saved(conv_net(), tmp_path)
    needed = apart.ROOM_BYTES + apart.WEIGHTS_AT_ONCE * os.path.getsize(path)
    for left, count in ((needed - 1, 0), (needed, 1)):
        monkeypatch.setattr(apart, "available_bytes", lambda left=left: left)
        tightship.load(path).close()
        assert len(taken) == count


def test_many_weights_are_packed_here(tmp_path: Path, taken, monkeypatch) -> None:
    monkeypatch.setattr(apart, "WEIGHTS_BYTES_MAX", 4 * LARGE)
    with tightship.load(saved(scaled(), tmp_path)) as model:
        assert model.plan.weights_bytes > 4 * LARGE
    assert taken == []


@pytest.mark.usefixtures("taken", "_refused")
def test_open_lengths_tuning_and_bytes_are_planned_here(tmp_path: Path) -> None:
    path = saved(mlp(), tmp_path)
    with tightship.load(path, shapes={"batch": 2}) as model:
        assert model(filled(3, 16)).shape == (3, 4)
    data = conv_net().SerializeToString()
    tightship.load(data).close()
    tightship.load(saved(data, tmp_path), tune=tmp_path / "tuned.json").close()


@pytest.mark.parametrize("name", ["", "missing/python3", "fails/python3", "dies/python3"])
def test_without_another_process_it_is_planned_here(name: str, tmp_path, taken, monkeypatch):
    run = f"exec '{sys.executable}' \"$@\""
    for each, line in {"fails": "exit 3", "dies": f"(sleep 0.4; kill -9 $$) & {run}"}.items():
        script = tmp_path / each / "python3"
        script.parent.mkdir()
        script.write_text(f"#!/bin/sh\n{line}\n")
        script.chmod(0o700)
    monkeypatch.setattr(sys, "executable", name and str(tmp_path / name))
    with tightship.load(saved(conv_net(), tmp_path)) as model:
        model.run(inputs_of(model))
    assert taken == [] or name == "dies/python3"


@pytest.mark.usefixtures("taken", "_refused")
def test_without_files_in_memory_it_is_planned_here(tmp_path: Path, monkeypatch) -> None:
    def refuse(*_: object) -> int:
        raise OSError(errno.ENOSYS, "not here")

    monkeypatch.setattr(os, "memfd_create", refuse)
    tightship.load(saved(conv_net(), tmp_path)).close()


SCRIPT = """
import gc, json, os, resource, sys
import numpy as np
import tightship

def status(field):
    with open("/proc/self/status") as lines:
        return next(int(line.split()[1]) << 10 for line in lines if line.startswith(field + ":"))

path, data_limit = json.loads(sys.argv[1])
before = status("VmRSS")
if data_limit:
    limit = status("VmData") + data_limit
    resource.setrlimit(resource.RLIMIT_DATA, (limit, limit))
opened = set(os.listdir("/proc/self/fd"))
with tightship.load(path, max_memory="1GiB") as model:
    inputs = {n: np.zeros(shape, dtype.numpy) for n, (dtype, shape) in model.input_types.items()}
    for _ in range(3):
        model.run(inputs)
    gc.collect()
    left = set(os.listdir("/proc/self/fd")) - opened
    with open("/proc/self/maps") as maps:
        left |= {line for line in maps if "memfd" in line}
    print(json.dumps([model.plan.peak_bytes, status("VmHWM") - before, "onnx" in sys.modules,
                      sorted(left)]))
"""


def run(*arguments: object) -> list[object]:
    command = [sys.executable, "-W", "error", "-c", SCRIPT, json.dumps(arguments)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    found: list[object] = json.loads(done.stdout)
    return found


def test_a_process_gains_less_than_it_plans(tmp_path: Path, monkeypatch) -> None:
    """A limit on data, which the other process has as well, changes nothing."""
    monkeypatch.setenv("PYTHONPYCACHEPREFIX", str(tmp_path / "bytecode"))
    monkeypatch.delenv("PYTHONDONTWRITEBYTECODE", raising=False)
    path = saved(conv_net(), tmp_path)
    planned, *_ = run(str(path), None)  # and leaves the bytecode of all modules
    assert planned == tightship.plan(path).peak_bytes
    again, gained, reads_onnx, left = run(str(path), planned)
    assert again == planned
    assert gained <= planned - SPARED_BYTES
    assert not reads_onnx
    assert left == []


INTERRUPTED = """
import os, signal, sys, tightship
def interrupt(done, total):
    os.kill(os.getpid(), signal.SIGINT)
tightship.load(sys.argv[1], progress=interrupt)
"""


def test_an_interrupt_is_one(tmp_path: Path) -> None:
    command = [sys.executable, "-c", INTERRUPTED, str(saved(scaled(), tmp_path))]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode in (-signal.SIGINT, 128 + signal.SIGINT)
    assert done.stderr.count("Traceback") == 1


WITHOUT_STREAMS = """
import os, sys
os.close(0)
os.close(1)
import tightship
from tightship.loading import apart
taken = []
take_over = apart._taken_over
apart._taken_over = lambda *given: taken.append(take_over(*given)) or taken[-1]
model = tightship.load(sys.argv[1])
sys.exit(len(taken) - 1)
"""


def test_a_daemon_without_streams_has_weights_in_no_file_of_its_own(tmp_path: Path) -> None:
    command = [sys.executable, "-c", WITHOUT_STREAMS, str(saved(scaled(), tmp_path))]
    log = tmp_path / "log"
    with log.open("wb") as errors:
        done = subprocess.run(command, stderr=errors, check=False)
    assert done.returncode == 0, log.read_bytes()[-2000:]
    assert log.read_bytes() == b""
