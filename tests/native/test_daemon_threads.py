"""Daemon threads in the native core when the interpreter ends: the process ends well, silently."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.driver.native_driver import driver

BIND = Path(__file__).parents[2] / "native" / "bind"

SCRIPT = """
import sys, threading, time
import numpy as np
{prepare}
def work(begun):
    for number in range(1 << 62):
        {work}
        if number == 2:
            begun.set()
begun = [threading.Event() for _ in range({threads})]
for each in begun:
    threading.Thread(target=work, args=(each,), daemon=True).start()
for each in begun:
    each.wait()
"""

BOUND = """
from tests.small_models import relu_chain
import tightship
model = tightship.load(relu_chain({steps}, {side}))
x = {{name: np.ones((1, {side}), 'f4') for name in model.input_names}}
"""

RESOURCE = """
import tightship.plug.numpy
from tightship.resource import CallbackResource, HostResource
host = HostResource()
class Mine:
    def __init__(self):
        self.memory = CallbackResource(self.allocate, self.deallocate)
    def allocate(self, size, alignment):
        return host.allocate(size, alignment)
    def deallocate(self, address, size, alignment):
        host.deallocate(address, size, alignment)
memory = Mine().memory
"""

VIRTUAL = """
from tests.resource.virtual.file_pair import Addresses, Part
from tightship.resource.virtual import HostStream, PythonDevice, PythonStream, virtual_resource
class Fence:
    def is_signalled(self):
        return sum(range(1000)) > 0
memory = virtual_resource(PythonDevice(Part, Addresses, maps_twice=True), page_bytes=1 << 16)
streams = [PythonStream(Fence), HostStream()]
"""

USE = "memory.deallocate(memory.allocate({size}), {size})"

KINDS = {
    "short runs": (BOUND.format(steps=2, side=64), "model.run(x)"),
    "long runs": (BOUND.format(steps=40, side=1 << 18), "model.run(x)"),
    "runs of a model of its own": (
        BOUND.format(steps=2, side=64),
        "tightship.load(relu_chain(2, 64)).run(x)",
    ),
    "a Python function that gives memory": (RESOURCE, USE.format(size=64)),
    "large blocks": (RESOURCE, "host.deallocate(host.allocate(1 << 25), 1 << 25)"),
    "NumPy's arrays": (RESOURCE, "with tightship.plug.numpy.use(memory): np.empty(1 << 25, 'u1')"),
    "a Python device and streams": (
        VIRTUAL,
        "stream = streams[number % 2]; at = memory.allocate_on(1 << 16, stream); "
        "memory.deallocate_on(at, 1 << 16, stream)",
    ),
    "a stream's functions": (VIRTUAL, "streams[1].submit(lambda: time.sleep(1e-3))"),
    "plans": (
        "from tightship.planner import Problem, place\nsteps = np.arange(3000)",
        "place(Problem(steps % 97 + 1, steps, steps + 1 + steps % 13, np.ones_like(steps)))",
    ),
    "sleep, with a model at hand": (
        BOUND.format(steps=2, side=64),
        "kept = model; time.sleep(.01)",
    ),
}


def ended(script: str, *arguments: str) -> tuple[int, str]:
    done = subprocess.run(
        [sys.executable, "-c", script, *arguments],
        capture_output=True, text=True, check=False, timeout=120,
    )  # fmt: skip
    return done.returncode, done.stdout + done.stderr


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("kind", KINDS)
def test_the_process_ends_well(kind, threads):
    prepare, work = KINDS[kind]
    assert ended(SCRIPT.format(prepare=prepare, work=work, threads=threads)) == (0, "")


CLIENT = """
from tests.small_models import relu_chain
from tightship.driver.client.client import Client
client = Client(sys.argv[1])
model = client.prepare(relu_chain(1, 64))
shape = model.interface.inputs[0].dimensions
segment = client.segment(1 << 16)
x, y = segment.place(shape, "f4"), segment.place(shape, "f4")
burst = model.burst()
"""


@pytest.mark.parametrize("call", ["burst", "model"])
def test_clients_of_a_driver_end_well(call, tmp_path):
    script = SCRIPT.format(prepare=CLIENT, work=f"{call}.execute([x], [y])", threads=1)
    with driver(tmp_path) as running:
        assert ended(script, str(running.path)) == (0, "")


QUEUED = """
import time
from tightship.resource.virtual import HostStream
stream = HostStream()
for _ in range(100):
    stream.submit(lambda: time.sleep(.05))
"""


def test_a_stream_with_work_left_does_not_hold_the_end_up():
    assert ended(QUEUED) == (0, "")


def test_bindings_release_and_take_the_gil_by_the_guards_only():
    others = re.compile(r"gil_scoped_|PyGILState_(?!Check)|PyEval_(Save|Restore)Thread")
    found = {path.name for path in BIND.glob("*.?pp") if others.search(path.read_text())}
    assert found == {"gil.hpp"}
