"""Models that another process plans: the same in all respects, in less memory."""

import errno
import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from dataclasses import fields, replace
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
from tightship.loading import apart, handing_over, unprepared
from tightship.loading.apart import PIECE_BYTES
from tightship.loading.reading_process import ReadingProcess
from tightship.model import Model

SPARED_BYTES = 16 << 20
"""Least bytes by which a process gains less than one that plans the model itself."""
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
            if f.name not in ("runtime_bytes", "arena", "apart")
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


def test_what_is_planned_is_what_is_loaded(tmp_path: Path, taken, monkeypatch) -> None:
    path = saved(conv_net(), tmp_path)
    with tightship.load(path) as model:
        there = model.plan
    assert len(taken) == 1
    planned = tightship.plan(path)
    monkeypatch.setattr(apart, "reads_models", lambda: True)
    with tightship.load(path) as model:
        here = model.plan
    assert tightship.plan(path).to_json() == here.to_json()
    assert planned.apart == there.apart != here.apart is None
    assert planned.peak_bytes == there.peak_bytes <= here.peak_bytes - SPARED_BYTES
    assert planned.here_bytes == there.here_bytes == here.here_bytes == here.peak_bytes
    assert planned.apart.process_bytes > planned.apart.together_bytes >= planned.peak_bytes


def test_a_limit_is_for_what_this_process_is_about_to_gain(tmp_path, taken, monkeypatch) -> None:
    path = saved(conv_net(), tmp_path)
    plan = tightship.plan(path)
    with tightship.load(path, max_memory=plan.peak_bytes) as model:
        assert model.plan.peak_bytes == plan.peak_bytes
    with pytest.raises(CapacityError) as raised:
        tightship.load(path, max_memory=plan.peak_bytes - 1)
    assert raised.value.needed_bytes == plan.peak_bytes
    causes: dict[str, tuple[str, Callable[[], object]]] = {
        "imported onnx": ("reads_models", lambda: True), "takes up to": ("available_bytes", int),
    }  # fmt: skip
    for text, (name, cause) in causes.items():
        with monkeypatch.context() as patch:
            patch.setattr(apart, name, cause)
            with pytest.raises(CapacityError, match=text) as raised:
                tightship.load(path, max_memory=plan.here_bytes - 1)
            assert raised.value.needed_bytes == plan.here_bytes
            with tightship.load(path, max_memory=plan.here_bytes) as model:
                assert model.plan.peak_bytes == plan.here_bytes
    assert len(taken) == 1


def test_a_model_that_must_be_planned_here_is_not_said_to_need_less(tmp_path, taken) -> None:
    path = saved(nonzero(), tmp_path)
    assert tightship.plan(path).apart is None
    with pytest.raises(CapacityError, match="limit") as raised:
        tightship.load(path, max_memory="1MiB", dynamic_memory="1KiB")
    assert "plans the model itself" not in str(raised.value)
    assert taken == []


def test_a_plan_is_made_in_another_process(tmp_path: Path, taken, monkeypatch) -> None:
    path = saved(conv_net(), tmp_path)
    with monkeypatch.context() as patch:
        patch.setattr(unprepared, "plan_file", None)
        there = tightship.plan(path, shapes={"x": [1, 3, 8, 8]}, workers=2)
    monkeypatch.setattr(apart, "reads_models", lambda: True)
    here = tightship.plan(path, shapes={"x": [1, 3, 8, 8]}, workers=2)
    assert (here.apart, here.peak_bytes) == (None, there.here_bytes)
    stated = replace(here, runtime_bytes=there.runtime_bytes, apart=there.apart)
    assert there.to_json() == stated.to_json()
    assert taken == []


def test_errors_of_a_plan_are_those_of_planning_here(tmp_path: Path, monkeypatch) -> None:
    path, texts = saved(BROKEN, tmp_path), set()
    for is_here in (False, True):
        monkeypatch.setattr(apart, "reads_models", lambda is_here=is_here: is_here)
        with pytest.raises(GraphError) as raised:
            tightship.plan(path)
        texts.add(str(raised.value))
    assert len(texts) == 1


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


@pytest.mark.usefixtures("taken")
def test_a_plan_of_what_is_planned_here_says_nothing_else(tmp_path: Path, monkeypatch) -> None:
    path = saved(scaled(), tmp_path)
    assert tightship.plan(path).apart is not None
    assert tightship.plan(path.read_bytes()).apart is None
    assert tightship.plan(path, tune=tmp_path / "tuned.json").apart is None
    for module in (apart, handing_over):
        monkeypatch.setattr(module, "WEIGHTS_BYTES_MAX", 4 * LARGE)
    assert tightship.plan(path).apart is None
    assert tightship.plan(saved(mlp(), tmp_path), shapes={"batch": 2}).apart is None


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
import gc, json, os, sys
import numpy as np
import tightship

def status(field):
    with open("/proc/self/status") as lines:
        return next(int(line.split()[1]) << 10 for line in lines if line.startswith(field + ":"))

path, plans_first = json.loads(sys.argv[1])
before = status("VmRSS")
opened = set(os.listdir("/proc/self/fd"))
if plans_first:
    tightship.plan(path)
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


@pytest.mark.usefixtures("taken")
@pytest.mark.parametrize("plans_first", [False, True])
def test_a_process_gains_what_it_plans(plans_first: bool, tmp_path: Path, monkeypatch) -> None:
    """Planning before loading adds nothing."""
    monkeypatch.setenv("PYTHONPYCACHEPREFIX", str(tmp_path / "bytecode"))
    monkeypatch.delenv("PYTHONDONTWRITEBYTECODE", raising=False)
    path = saved(conv_net(), tmp_path)
    planned, *_ = run(str(path), plans_first)  # and leaves the bytecode of all modules
    assert planned == tightship.plan(path).peak_bytes
    again, gained, reads_onnx, left = run(str(path), plans_first)
    assert again == planned
    assert gained <= planned
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
