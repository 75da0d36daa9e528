"""Runs after the first take nothing that grows from the heap.

Counted are calls of malloc and its like in one run whose inputs and outputs the caller holds:
by the shared object that made them, in a process that preloads a counter. Small Python objects
come from Python's own arenas and are counted as objects instead. oneDNN keeps small books for
each primitive it executes; NumPy and Python allocate for the steps they run.
"""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from tests.zoo.catalogue import SMALL

HERE = Path(__file__).parent
RUNS = 1000
QUICK = ("resnet50_folded", "gpt2")
MODELS = (
    "resnet50_folded", "efficientnet_b0", "unet", "bert", "bert_decomposed", "gpt2", "gpt2_decode",
    "vit", "whisper_encoder", "whisper_decoder", "lstm", "gru", "bert_int8",
)  # fmt: skip


@pytest.fixture(scope="session")
def counter(tmp_path_factory):
    """The library that counts, compiled once."""
    if sys.platform != "linux" or shutil.which("g++") is None:
        pytest.skip("there is no g++ to compile the counter with")
    path = tmp_path_factory.mktemp("heap") / "heap_counter.so"
    subprocess.run(
        ["g++", "-std=c++20", "-O1", "-Wall", "-Werror", "-shared", "-fPIC", "-o", path,
         HERE / "counter.cpp", "-ldl"], check=True,
    )  # fmt: skip
    return path


def measured(counter: Path, name: str, folder: Path) -> dict:
    """Return the figures of `measure` for a model."""
    case = SMALL[name](1)
    (folder / "model.onnx").write_bytes(case.model)
    np.savez(folder / "feeds.npz", **case.feeds)
    done = subprocess.run(
        [sys.executable, "-m", "tests.heap.measure", folder / "model.onnx", folder / "feeds.npz",
         str(RUNS)],
        env={**os.environ, "LD_PRELOAD": str(counter)}, cwd=HERE.parents[1],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.parametrize(
    "name", [pytest.param(n, marks=() if n in QUICK else pytest.mark.slow) for n in MODELS]
)
def test_a_run_takes_nothing_large_and_a_thousand_leave_nothing(name, counter, tmp_path):
    found = measured(counter, name, tmp_path)
    assert not [owner for owner in found["owners"] if owner.startswith("_core")]
    assert sum(owner["large"] for owner in found["owners"].values()) == 0, found["frames"]
    assert found["growth_bytes"] == 0
    assert found["growth_objects"] < RUNS / 4


def test_the_counter_sees_what_is_taken(counter):
    code = (
        "import ctypes, numpy\n"
        "counter = ctypes.CDLL(None)\n"
        "text = ctypes.create_string_buffer(1 << 16)\n"
        "counter.heap_live_bytes.restype = ctypes.c_long\n"
        "before = counter.heap_live_bytes()\n"
        "counter.heap_count_begin()\n"
        "kept = numpy.empty(50_000, numpy.uint8)\n"
        "counter.heap_count_end(text, ctypes.c_size_t(len(text)))\n"
        "assert counter.heap_live_bytes() - before >= 50_000\n"
        "print(text.value.decode())"
    )
    done = subprocess.run([sys.executable, "-c", code], env={**os.environ, "LD_PRELOAD": counter},
                          capture_output=True, text=True, check=True)  # fmt: skip
    large = [line.split()[3] for line in done.stdout.splitlines() if "multiarray" in line]
    assert large[0] == "1"
