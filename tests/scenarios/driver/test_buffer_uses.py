"""Uses of a driver's buffers: states, intermediate results, and going on without the driver."""

import runpy
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from onnx import TensorProto, helper

import tightship
from tests.driver.native_driver import driver
from tests.small_models import model
from tightship.driver import FallbackModel
from tightship.driver.client.remote import RemoteModel
from tightship.driver.types.status import ErrorStatus
from tightship.errors import DriverError

ROOT = Path(__file__).parents[3]
FLOAT = TensorProto.FLOAT
UNITS, STEPS = 16, 20
RANDOM = np.random.default_rng(5)
INPUTS = [RANDOM.standard_normal((2, 4), np.float32) for _ in range(STEPS)]
STATE = RANDOM.standard_normal((2, UNITS), np.float32)


def cell():
    """The next state of an input and a state."""
    random = np.random.default_rng(0)
    weights = {"w": (4, UNITS), "u": (UNITS, UNITS)}
    nodes = [
        helper.make_node("MatMul", ["x", "w"], ["xw"]),
        helper.make_node("MatMul", ["h", "u"], ["hu"]),
        helper.make_node("Add", ["xw", "hu"], ["sum"]),
        helper.make_node("Tanh", ["sum"], ["next"]),
    ]
    return model(
        nodes,
        [("x", FLOAT, [2, 4]), ("h", FLOAT, [2, UNITS])],
        [("next", FLOAT, [2, UNITS])],
        {name: random.standard_normal(shape, np.float32) / 4 for name, shape in weights.items()},
    )


def here(state, inputs=INPUTS):
    """The states after each step, in this process."""
    with tightship.load(cell()) as loaded:
        found = []
        for x in inputs:
            state = loaded(x, state)
            found.append(state)
    return found


def read(buffer):
    found = np.empty((2, UNITS), np.float32)
    buffer.copy_to(found)
    return found


def states_of(client, remote):
    return [client.allocate(inputs=[(remote, 1)], outputs=[(remote, 0)]) for _ in range(2)]


def test_a_state_is_initialised_and_carried_on(served):
    with served.client() as client:
        remote = client.prepare(cell())
        states = states_of(client, remote)
        with pytest.raises(DriverError) as caught:
            remote.execute([INPUTS[0], states[0].of()], [states[1].of()])
        assert caught.value.status == ErrorStatus.GENERAL_FAILURE
        states[0].copy_from(STATE)
        for step, wanted in enumerate(here(STATE)):
            ends = states[step % 2], states[1 - step % 2]
            remote.execute([INPUTS[step], ends[0].of()], [ends[1].of()])
            np.testing.assert_allclose(read(ends[1]), wanted, 1e-5, 1e-6)


def test_a_result_in_between_is_kept_for_what_needs_it(served):
    """An encoder runs once; each step of another model reads what it gave."""
    encoder = model(
        [helper.make_node("Sigmoid", ["x"], ["h"])],
        [("x", FLOAT, [2, UNITS])],
        [("h", FLOAT, [2, UNITS])],
    )
    with served.client() as client:
        first, second = client.prepare(encoder), client.prepare(cell())
        kept = client.allocate(inputs=[(second, 1)], outputs=[(first, 0)])
        first.execute([STATE], [kept.of()])
        for x in INPUTS[:4]:
            (result,) = second.execute([x, kept.of()])
            wanted = here(1 / (1 + np.exp(-STATE)), [x])[0]
            np.testing.assert_allclose(result, wanted, 1e-4, 1e-5)
        saved = read(kept)
    with served.client() as other:
        second = other.prepare(cell())
        again = other.allocate(inputs=[(second, 1)])
        again.copy_from(saved)
        (result,) = second.execute([INPUTS[0], again.of()])
        np.testing.assert_allclose(result, here(saved, INPUTS[:1])[0], 1e-4, 1e-5)


@pytest.fixture
def example():
    return runpy.run_path(str(ROOT / "examples/fallback.py"))


@pytest.mark.parametrize("deadly", [None, 3, 13])
def test_a_state_goes_on_in_this_process_when_the_driver_dies(
    tmp_path, example, monkeypatch, capsys, deadly
):
    """The driver dies at step `deadly`; with None it does not."""
    (tmp_path / "cell.onnx").write_bytes(cell())
    with driver(tmp_path) as running:
        plain, steps = RemoteModel.execute, []

        def execute(self, *arguments):
            if len(steps) == deadly:
                running.process.kill()
                running.process.wait()
            steps.append(None)
            return plain(self, *arguments)

        monkeypatch.setattr(RemoteModel, "execute", execute)
        found = example["follow"](str(tmp_path / "cell.onnx"), INPUTS, STATE, running.path)
    np.testing.assert_allclose(found, here(STATE)[-1], 1e-4, 1e-5)
    assert ("without a driver" in capsys.readouterr().err) == (deadly is not None)


def test_the_example_runs_with_a_driver_and_without(served, tmp_path):
    (tmp_path / "cell.onnx").write_bytes(cell())
    command = [sys.executable, "examples/fallback.py", str(tmp_path / "cell.onnx"), "10"]
    found = []
    for path in (served.path, tmp_path / "missing.sock"):
        done = subprocess.run(
            [*command, str(path)], cwd=ROOT, capture_output=True, text=True, check=True
        )
        found.append(float(done.stdout))
        assert ("without a driver" in done.stderr) == (path != served.path)
    assert found[0] == pytest.approx(found[1], rel=1e-5)


def test_a_model_runs_here_where_no_driver_serves_it(tmp_path):
    with driver(tmp_path) as running, FallbackModel(cell(), running.path) as fallback:
        assert fallback.refusal is None
        for permit in range(2):
            (result,) = fallback.execute([INPUTS[0], STATE])
            np.testing.assert_allclose(result, here(STATE)[0], 1e-5)
            if permit == 0:
                running.process.kill()
                running.process.wait()
        assert fallback.refusal.status == ErrorStatus.DEVICE_UNAVAILABLE
    with FallbackModel(cell(), tmp_path / "missing.sock") as fallback:
        assert fallback.refusal.status == ErrorStatus.DEVICE_UNAVAILABLE
        (result,) = fallback.execute([INPUTS[0], STATE])
        np.testing.assert_allclose(result, here(STATE)[0], 1e-5)


def test_what_a_driver_refuses_runs_here(served):
    """A shape that depends on data, which the driver has no type for."""
    source = model(
        [helper.make_node("NonZero", ["x"], ["y"])],
        [("x", FLOAT, [4])],
        [("y", TensorProto.INT64, [1, None])],
    )
    with FallbackModel(source, served.path) as fallback:
        assert fallback.refusal.status == ErrorStatus.GENERAL_FAILURE
        assert fallback.execute([np.float32([0, 1, 0, 2])])[0].tolist() == [[1, 3]]
