"""Cost of a new length: preparation, then the run, beside ONNX Runtime's first run at it.

    python -m benchmarks.bench_shapes [--layers 12] [--rounds 9] [--record]

GPT-2 small with symbolic `batch` and `steps`, weights from a seed, as `tests.zoo.open_lengths`
writes it. Lengths grow one by one, as they do where text is generated. Preparation is a new
length's first run less the median of the runs after it.
"""

import argparse
import gc
import statistics
import sys
import time
from collections.abc import Callable, Sequence

import numpy as np
import onnxruntime
from benchmarks.record import append
from tests.zoo.open_lengths import text
from tests.zoo.oracle import quiet

import tightship

FIRST = 24
"""The length that the model is loaded for; the first after it, and later ones, are timed."""


def main(arguments: Sequence[str]) -> None:
    """Measure, print, and record where asked."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.bench_shapes")
    parser.add_argument("--layers", type=int, default=12)
    parser.add_argument("--hidden", type=int, default=768)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--record", action="store_true")
    options = parser.parse_args(arguments)
    data = text(options.layers, options.hidden, 12, 1000)
    figures = measured(data, options.rounds)
    for name, value in figures.items():
        sys.stdout.write(f"{name:36} {value}\n")
    if options.record:
        append("bench_shapes", {"layers": options.layers, "figures": figures})


def measured(data: bytes, rounds: int) -> dict[str, float]:
    """Milliseconds and bytes."""
    session = onnxruntime.InferenceSession(data, quiet())
    started = time.perf_counter()
    with tightship.load(data, shapes={"ids": (1, FIRST)}) as model:
        load_ms = 1e3 * (time.perf_counter() - started)
        before = model.programs.bytes
        prepared, run, first, again = [], [], [], []
        for length in range(FIRST + 1, FIRST + 1 + rounds):
            ids = np.random.default_rng(length).integers(0, 1000, (1, length))
            gc.collect()
            cold, warm = times(lambda ids=ids: model(ids=ids))
            prepared.append(cold - warm)
            run.append(warm)
            cold, warm = times(lambda ids=ids: session.run(None, {"ids": ids}))
            first.append(cold)
            again.append(warm)
        found = model(ids=ids)
        wanted = session.run(None, {"ids": ids})[0]
        statistic = model.programs
    return {
        "load_ms": round(load_ms, 1),
        "new_length_preparation_ms": round(statistics.median(prepared), 2),
        "new_length_preparation_least_ms": round(min(prepared), 2),
        "new_length_preparation_most_ms": round(max(prepared), 2),
        "run_ms": round(statistics.median(run), 2),
        "ort_first_run_ms": round(statistics.median(first), 2),
        "ort_run_ms": round(statistics.median(again), 2),
        "bytes_of_a_program": (statistic.bytes - before) // rounds,
        "difference": float(np.abs(found - wanted).max() / np.abs(wanted).max()),
    }


def times(call: Callable[[], object], repeat: int = 5) -> tuple[float, float]:
    """Milliseconds of the first call, and the median of those after it."""
    taken = []
    for _ in range(1 + repeat):
        started = time.perf_counter()
        call()
        taken.append(1e3 * (time.perf_counter() - started))
    return taken[0], statistics.median(taken[1:])


if __name__ == "__main__":
    main(sys.argv[1:])
