"""Tokens per second of a decoder, for a prompt and for steps after it, against ONNX Runtime.

The weights are made. Both run in turns in this process, at 1 and 2 threads: Tightship by a session,
ONNX Runtime by its own loop, whose caches grow. Resident memory is what one process of its own
gains by loading, a prompt and a step.

    python -m benchmarks.bench_decode [--quick] [--json] [--record]
"""

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from benchmarks import record
from tests import decoders
from tests.engine.state.loops import GrowingCaches

import tightship

SIZE = decoders.Size(layers=4, heads=8, shared=4, length=64, vocabulary=4000, positions=4096)
QUICK = decoders.Size(layers=1, heads=4, shared=2, length=16, vocabulary=100, positions=4096)
SHAPES = {"batch_size": 1, "sequence_length": 1, "past_sequence_length": 1}
MODELS = {"llama": decoders.llama, "attention23": decoders.attention23}

RESIDENT = """
import sys
import numpy as np

def status(field):
    for line in open("/proc/self/status"):
        if line.startswith(field + ":"):
            return int(line.split()[1]) * 1024

path, kind, context = sys.argv[1:]
before = status("VmRSS")
if kind == "tightship":
    import tightship
    shapes = {"batch_size": 1, "sequence_length": 1, "past_sequence_length": 1}
    session = tightship.load(path, shapes=shapes).session(int(context))
else:
    from pathlib import Path
    from tests.engine.state.loops import GrowingCaches
    session = GrowingCaches(Path(path).read_bytes())
session.step(list(range(16)))
session.step([1])
print(status("VmHWM") - before)
"""


def main() -> None:
    """Measure, print, and record where asked."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a small decoder and few steps")
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument("--record", action="store_true", help="add a line to the results")
    options = parser.parse_args()
    size, rounds = (QUICK, 1) if options.quick else (SIZE, 5)
    rows = [row(name, size, threads, rounds) for name in MODELS for threads in (1, 2)]
    if options.json:
        print(json.dumps({"rows": rows}))
    else:
        for each in rows:
            print(json.dumps(each))
    if options.record:
        record.append("bench_decode", {"rows": rows})


def row(name: str, size: decoders.Size, threads: int, rounds: int) -> dict[str, Any]:
    """Measure a model at a number of threads: medians of rounds in turns."""
    data = MODELS[name](size)
    prompt = [i % size.vocabulary for i in range(128 if rounds > 1 else 16)]
    steps, found = 16, {}
    with tightship.load(data, shapes=SHAPES, threads=threads) as model:
        session = model.session(1024)

        def ours() -> Any:
            session.reset()
            return session

        def theirs() -> Any:
            return GrowingCaches(data, threads=threads)

        times: dict[str, list[tuple[float, float]]] = {"tightship": [], "onnxruntime": []}
        for _ in range(rounds + 1):  # the first of each makes programs
            for peer, begin in (("tightship", ours), ("onnxruntime", theirs)):
                times[peer].append(_timed(begin, prompt, steps))
        for peer, each in times.items():
            kept = each[1:]
            found[f"{peer}_prompt_tokens_per_s"] = len(prompt) / statistics.median(
                first for first, _ in kept
            )
            found[f"{peer}_step_tokens_per_s"] = steps / statistics.median(
                later for _, later in kept
            )
    return {"model": name, "threads": threads, "prompt": len(prompt), **found,
            **(_resident(data) if threads == 1 else {})}  # fmt: skip


def _timed(begin: Callable[[], Any], prompt: list[int], steps: int) -> tuple[float, float]:
    session = begin()
    start = time.perf_counter()
    logits = session.step(prompt)
    middle = time.perf_counter()
    for _ in range(steps):
        logits = session.step([int(np.argmax(logits[0, -1]))])
    return middle - start, time.perf_counter() - middle


def _resident(data: bytes) -> dict[str, int]:
    """Measure bytes that a process gains, with two contexts of ours."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "decoder.onnx"
        path.write_bytes(data)
        cases = {"tightship_2048": ("tightship", 2048), "tightship_512": ("tightship", 512),
                 "onnxruntime": ("onnxruntime", 0)}  # fmt: skip
        return {
            f"{name}_gained_bytes": int(subprocess.run(
                [sys.executable, "-c", RESIDENT, str(path), kind, str(context)],
                check=True, capture_output=True, text=True,
            ).stdout)
            for name, (kind, context) in cases.items()
        }  # fmt: skip


if __name__ == "__main__":
    main()
