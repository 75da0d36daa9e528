"""Time of a network of branches with two steps at once, beside one after another.

Both run on one thread a step, from one model; they alternate, and the ratio is the median over
rounds. `plan_mb` is the arena of each: steps that overlap share fewer bytes.
"""

import time
from collections.abc import Iterator, Mapping
from statistics import median
from typing import Any

import numpy as np
from tests.zoo.inception_bn import inception_bn
from tests.zoo.net import Case

import tightship

ROUNDS = 30
WORKERS = 2


def rows() -> Iterator[dict[str, object]]:
    """Inception-BN at batch 1 and 4."""
    for batch in (1, 4):
        yield {"model": f"Inception-BN, {batch}", **figures(inception_bn(batch))}


def figures(case: Case) -> dict[str, object]:
    """Milliseconds of both, and their ratio; outputs are compared bit by bit."""
    serial, parallel = [], []
    with tightship.load(case.model, threads=1) as model:
        wanted = model.run(case.feeds)
        wanted = {name: value.copy() for name, value in wanted.items()}
        got = model.run(case.feeds, workers=WORKERS)
        same = all(np.array_equal(got[name], value) for name, value in wanted.items())
        for round_index in range(ROUNDS):
            for workers in (1, WORKERS) if round_index % 2 else (WORKERS, 1):
                taken = timed(model, case.feeds, workers)
                (serial if workers == 1 else parallel).append(taken)
    ratios = [both / one for one, both in zip(serial, parallel, strict=True)]
    return {
        "serial_ms": round(median(serial), 2),
        "workers_ms": round(median(parallel), 2),
        "ratio": round(median(ratios), 3),
        "same_bits": same,
    }


def timed(model: Any, feeds: Mapping[str, Any], workers: int) -> float:
    """Milliseconds of one run."""
    started = time.perf_counter()
    model.run(feeds, workers=workers)
    return 1e3 * (time.perf_counter() - started)
