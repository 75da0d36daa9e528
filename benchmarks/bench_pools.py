"""Steps whose shapes follow from data: memory from a model's pools, beside NumPy's own allocation.

    python -m benchmarks.bench_pools --record

Rows that an input chooses go through products and activations, another number of them in each run,
or through a detector's heads. Both ways take turns in one process on one thread, and their results
are equal; a ratio is the median over rounds of processor times. Memory is that of a process that
does all runs one way: the most that was resident, and what is resident when they are over.
"""

import argparse
import json
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from statistics import median

import numpy as np
from benchmarks import record
from numpy.typing import NDArray
from tests.zoo.detection import ssdlite
from tests.zoo.net import Net
from tests.zoo.rcnn import faster_rcnn

import tightship

Array = NDArray[np.generic]
Feeds = Mapping[str, Array]
ROWS, WIDTH, LAYERS = 20_000, 64, 6
ROUNDS = 300
WAYS = ("numpy", "pools")


def chosen() -> bytes:
    """Products and activations of the rows that `keep` chooses."""
    net = Net(3)
    keep = net.input("keep", np.ones(ROWS, bool))
    y = net("Compress", net.normal("x", ROWS, WIDTH), keep, axis=0)
    for _ in range(LAYERS):
        y = net("Relu", net("MatMul", y, net.weight(WIDTH, WIDTH)))
        y = net("Add", y, net("Sigmoid", y))
    net.output(y)
    return net.case().model


def rows(most: int, count: int) -> Iterator[Feeds]:
    """Inputs that choose up to `most` rows each."""
    random = np.random.default_rng(0)
    x = np.ones((ROWS, WIDTH), np.float32)
    for _ in range(count):
        yield {"x": x, "keep": random.random(ROWS) < random.random() * most / ROWS}


def images(feeds: Feeds, count: int) -> Iterator[Feeds]:
    """Other images of the same shape."""
    random = np.random.default_rng(0)
    for _ in range(count):
        yield {
            name: random.standard_normal(value.shape).astype(np.float32)
            for name, value in feeds.items()
        }


CASES: Mapping[str, Callable[[int], tuple[bytes, Iterator[Feeds]]]] = {
    "up to 20,000 rows": lambda count: (chosen(), rows(20_000, count)),
    "up to 2,000 rows": lambda count: (chosen(), rows(2_000, count)),
    "up to 200 rows": lambda count: (chosen(), rows(200, count)),
    "SSDlite": lambda count: (ssdlite().model, images(ssdlite().feeds, count // 10)),
    "Faster R-CNN": lambda count: (faster_rcnn().model, images(faster_rcnn().feeds, count // 30)),
}


def loaded(model: bytes, way: str) -> tightship.Model:
    """A model whose unplanned steps take their memory that way."""
    made = tightship.load(model)
    if way == "numpy":
        made._programs.dynamic = None
    return made


def timed(name: str, count: int) -> dict[str, object]:
    """Processor time of a run with pools, over that without."""
    model, inputs = CASES[name](count)
    ways = [loaded(model, way) for way in WAYS]
    times: list[list[int]] = [[], []]
    for number, given in enumerate(inputs):
        found = {}
        for place in (0, 1) if number % 2 else (1, 0):
            began = time.process_time_ns()
            found[place] = ways[place].run(given)
            times[place].append(time.process_time_ns() - began)
        for key, value in found[0].items():
            np.testing.assert_array_equal(value, found[1][key])
    warm = list(zip(*times, strict=True))[len(times[0]) // 10 :]
    pools = ways[1].memory_stats()
    return {
        "case": name,
        "runs": len(warm),
        "ratio": round(median(new / old for old, new in warm), 3),
        "sum_ratio": round(sum(new for _, new in warm) / sum(old for old, _ in warm), 3),
        "numpy_ms": round(median(old for old, _ in warm) / 1e6, 2),
        "pools_peak_mib": round(pools.dynamic_peak_bytes / 2**20, 2),
    }


def resident(name: str, way: str, count: int) -> tuple[float, float]:
    """MiB of a process of its own: at most, and at the end."""
    command = [sys.executable, "-m", "benchmarks.bench_pools", "--child", name, way, str(count)]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    most, end = json.loads(done.stdout)
    return most, end


def child(name: str, way: str, count: int) -> None:
    """Do all runs, and print what is resident."""
    model, inputs = CASES[name](count)
    made = loaded(model, way)
    for given in inputs:
        made.run(given)
    with open("/proc/self/status", encoding="ascii") as file:
        found = dict(line.split(":", 1) for line in file)
    print(json.dumps([int(found[key].split()[0]) / 1024 for key in ("VmHWM", "VmRSS")]))


def main(arguments: Sequence[str]) -> None:
    """Measure, print, and record where asked."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.bench_pools")
    parser.add_argument("--record", action="store_true", help="keep the figures")
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--child", nargs=3, help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.child is not None:
        child(options.child[0], options.child[1], int(options.child[2]))
        return
    found = []
    for name in CASES:
        row = timed(name, options.rounds)
        for way in WAYS:
            row[f"{way}_resident_mib"] = [round(x, 1) for x in resident(name, way, options.rounds)]
        print(json.dumps(row), flush=True)
        found.append(row)
    if options.record:
        record.append("bench_pools", {"rows": found})


if __name__ == "__main__":
    main(sys.argv[1:])
