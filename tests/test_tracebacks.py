"""Tracebacks of errors as users see them: the line that made the call, and the message."""

import json
import os
import subprocess
import sys
from pathlib import Path

from tests.driver.native_driver import driver

ROOT = Path(__file__).parents[1]
LINES_MAX = 8
"""Most lines of a traceback: its title, the caller's frame of at most three lines, the message."""

HARNESS = """
import json, sys, traceback
cases, setup = json.load(sys.stdin)
names, found = {}, {}
exec(setup, names)
for name, code in cases.items():
    try:
        exec(code, names)
    except Exception as error:
        error.__traceback__ = error.__traceback__.tb_next
        found[name] = traceback.format_exc()
    else:
        found[name] = ""
print(json.dumps(found))
"""
SETUP = """
import numpy as np
import tightship, tightship.cost, tightship.resource, tightship.trace.events
import tightship.cost.squeeze, tightship.frontend.onnx, tightship.resource.spec
from pathlib import Path
from tests import models
data = models.mlp(16).SerializeToString()
x, wide = np.ones((2, 16), np.float32), np.ones((2, 16))
model = tightship.load(data, shapes={"x": (2, 16)})
graph = tightship.frontend.onnx.read_bytes(data, shapes={"x": (2, 16)})
closed = tightship.load(data, shapes={"x": (2, 16)})
closed.close()
out = {"y": np.empty((2, 4), np.float32)}
"""
RUNS = {
    "of another dtype": "model.run({'x': wide})",
    "of another shape": "model.run({'x': x[:, :5]})",
    "without an input": "model.run({})",
    "with an unknown input": "model.run({'x': x, 'z': x})",
    "with an output too small": "model.run({'x': x}, outputs={'y': np.empty(3, np.float32)})",
    "with no workers": "model.run({'x': x}, workers=0)",
    "called with another dtype": "model(wide)",
    "called with too many": "model(x, x)",
    "called with one twice": "model(x, x=x)",
    "that needs no argument": "model.run()",
    "bound to another dtype": "model.bind({'x': wide}, out).run(tightship.StopFlag())",
    "bound to no output": "model.bind({'x': x}, {})",
    "profiled never": "model.profile({'x': x}, repeat=0)",
    "planned for another rank": "model.plan_for({'x': (2,)})",
    "after closing": "closed(x)",
}
LOADS = {
    "from nowhere": "tightship.load('nowhere.onnx')",
    "of a number": "tightship.load(3)",
    "of garbage": "tightship.load(b'garbage')",
    "without shapes": "tightship.load(data)",
    "of another rank": "tightship.load(data, shapes={'x': (2,)})",
    "of an unknown input": "tightship.load(data, shapes={'q': (2, 16)})",
    "in too little": "tightship.load(data, shapes={'x': (2, 16)}, max_memory='1KiB')",
    "of an odd amount": "tightship.load(data, shapes={'x': (2, 16)}, max_memory='1 apple')",
    "without an unknown pass": "tightship.load(data, shapes={'x': (2, 16)}, without=['magic'])",
    "with an unknown option": "tightship.load(data, colour=3)",
    "planned from nowhere": "tightship.plan('nowhere.onnx')",
    "planned without shapes": "tightship.plan(data)",
    "prepared from nowhere": "tightship.prepare('nowhere.onnx', 'x.tship')",
    "read from garbage": "tightship.frontend.onnx.read_bytes(b'garbage')",
}
OTHERS = {
    "train: no loss": (
        "tightship.train(data, loss='none', optimizer=tightship.Adam(), shapes={'x': (2, 16)})"
    ),
    "train: no shapes": "tightship.train(data, loss='squared_error', optimizer=tightship.Sgd())",
    "train: a rate": "tightship.Adam(-1.0)",
    "step": (
        "tightship.train(data, loss='squared_error', optimizer=tightship.Adam(),"
        " shapes={'x': (2, 16)}).step({'x': x})"
    ),
    "resource: a word": "tightship.resource.spec.resource_from('sponge')",
    "resource: an amount": "tightship.resource.spec.resource_from('limit:banana host')",
    "resource: shared": "tightship.resource.SharedArenaPool('/nowhere/at/all', 0)",
    "resource: division": "tightship.resource.divide(0)",
    "trace": "tightship.trace.events.read_trace(Path('nowhere.csv'))",
    "cost": "tightship.cost.squeeze.squeezed(graph, '1 apple')",
    "cache": "tightship.set_primitive_cache_capacity(-1)",
    "problem": "tightship.Problem([1], [2], [1], [1])",
    "size": "tightship.Problem(*(np.array([each]) for each in (-1, 0, 1, 1)))",
}
CALLS = {
    "no driver": "Client('/nowhere.socket')",
    "a model of garbage": "client.prepare(b'garbage')",
    "a model from nowhere": "client.prepare(Path('nowhere.onnx'))",
    "another dtype": "remote.execute([wide])",
    "another shape": "remote.execute([x[:, :5]])",
    "no input": "remote.execute([])",
    "an unknown name": "client.prepare_named('unknown')",
    "no memory": "client.segment(0)",
    "a burst": "remote.burst().execute([wide])",
}


def printed(cases: dict[str, str], setup: str = "") -> dict[str, str]:
    """The traceback of each case, as a process of its own prints it."""
    environment = {k: v for k, v in os.environ.items() if k != "TIGHTSHIP_TRACEBACK"}
    finished = subprocess.run(
        [sys.executable, "-c", HARNESS],
        input=json.dumps([cases, SETUP + setup]), env=environment, cwd=ROOT,
        capture_output=True, text=True, timeout=300, check=True,
    )  # fmt: skip
    found: dict[str, str] = json.loads(finished.stdout.splitlines()[-1])
    return found


def assert_short(found: dict[str, str]) -> None:
    assert [name for name, text in found.items() if not text] == []
    frames = {name: text.count("\n  File ") for name, text in found.items()}
    assert {name: found[name] for name, count in frames.items() if count != 1} == {}
    assert {name: text for name, text in found.items() if len(text.splitlines()) > LINES_MAX} == {}


def test_a_wrong_call_points_at_its_caller() -> None:
    assert_short(printed({**RUNS, **LOADS, **OTHERS}))


def test_a_wrong_call_of_a_client_points_at_its_caller(tmp_path: Path) -> None:
    setup = """
import onnx
from tightship.driver import Client
client = Client({path!r})
fixed = onnx.load_from_string(data)
fixed.graph.input[0].type.tensor_type.shape.dim[0].dim_value = 2
remote = client.prepare(fixed.SerializeToString())
"""
    with driver(tmp_path) as running:
        assert_short(printed(CALLS, setup.format(path=str(running.path))))


def test_a_process_that_ends_by_an_error_prints_as_much() -> None:
    short, full = (
        subprocess.run(
            [sys.executable, "-c", SETUP + "model.run({'x': wide})"], cwd=ROOT,
            env={**os.environ, "TIGHTSHIP_TRACEBACK": how}, capture_output=True, text=True,
            timeout=300, check=False,
        ).stderr
        for how in ("", "full")
    )  # fmt: skip
    assert short.count("  File ") == 1
    assert full.count("  File ") > 4
    assert short.splitlines()[-1] == full.splitlines()[-1]
    assert "Convert it with `.astype('float32')`." in short
