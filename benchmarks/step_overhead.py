"""Cost of a native step beyond oneDNN's own: a chain of 1,000 tiny ReLUs, ours and a C loop's.

    python -m benchmarks.step_overhead

The loop is compiled on the spot, against the headers of the build environment and the library
that Tightship has open, and alternates with a run of the same chain.
"""

import argparse
import ctypes
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
from benchmarks import record
from tests.zoo.net import Net

import tightship
from tightship import _core
from tightship._core import StopFlag
from tightship.engine.run.limits import Limits

STEPS = 1000
ROUNDS = 400


def chain() -> bytes:
    """A model of ReLUs one after another."""
    net = Net()
    x = net.normal("x", 1, 16)
    for _ in range(STEPS):
        x = net("Relu", x)
    net.output(x)
    return net.case().model


def plain_loop(folder: Path) -> Callable[[], None]:
    """The same chain by a C++ loop over oneDNN's own functions."""
    located = subprocess.run(
        [sys.executable, record.ROOT / "native" / "find_onednn.py"],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    if located.returncode:
        message = f"The headers of oneDNN are needed: {located.stderr.strip()}."
        raise SystemExit(message)
    library = folder / "chain.so"
    subprocess.run(
        ["g++", "-std=c++20", "-O2", "-shared", "-fPIC", "-o", library,
         Path(__file__).with_suffix(".cpp"), f"-I{located.stdout.split(';')[0]}",
         _core.onednn_path()], check=True,
    )  # fmt: skip
    loaded = ctypes.CDLL(str(library))
    loaded.chain_create.restype = ctypes.c_void_p
    made = ctypes.c_void_p(loaded.chain_create(STEPS))
    return lambda: loaded.chain_run(made)


def nanoseconds(run: Callable[[], object]) -> float:
    """Time one step in one run of a chain, in nanoseconds."""
    start = time.perf_counter_ns()
    run()
    return (time.perf_counter_ns() - start) / STEPS


def main() -> None:
    """Take turns, print, record."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.step_overhead")
    parser.add_argument("--quick", action="store_true", help="record nothing")
    options = parser.parse_args()
    with (
        tempfile.TemporaryDirectory() as folder,
        tightship.load(chain(), without=("native", "fuse_activation")) as model,
    ):
        assert all(step.kernel == "onednn" for step in model.plan.steps)
        model(np.zeros((1, 16), np.float32))
        loop = plain_loop(Path(folder))
        with model._programs.reserved(model._key, Limits()) as (_, arena):
            context, stop = arena.context, StopFlag()
            assert context is not None
            _core.set_onednn_threads(1)
            pairs = np.array([
                (nanoseconds(loop), nanoseconds(lambda: context.run((0, STEPS), stop)))
                for _ in range(ROUNDS)
            ])  # fmt: skip
    medians, least = np.median(pairs, axis=0), pairs.min(axis=0)
    figures = {
        "onednn_ns": round(float(medians[0]), 1),
        "tightship_ns": round(float(medians[1]), 1),
        "overhead_ns": round(float(np.median(pairs[:, 1] - pairs[:, 0])), 1),
        "least_overhead_ns": round(float(least[1] - least[0]), 1),
    }
    for name, value in figures.items():
        print(f"{name:<20}{value:>8} a step")
    if not options.quick:
        record.append("step_overhead", figures)


if __name__ == "__main__":
    main()
