"""Stages on one node of Ray: time of a hop, and throughput of two stages on two processors.

A hop is what one more stage adds to a call: 600 KB to it, and its few microseconds to start. The
classic way calls the same actors with references to objects. Throughput is compared with two
processes of one thread that each run the whole model, without Ray and beside each other.
"""

import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from pathlib import Path

import numpy as np
from benchmarks.models import stored
from tests.cluster.local_cluster import cluster_of
from tests.small_models import model as onnx_model

import tightship
from tightship import cluster
from tightship.cluster.replica import Array
from tightship.cluster.splitting import Splitter, Stage
from tightship.cluster.stage_transport import Objects

NODE_MIB = 2000
ROWS, COLUMNS, SOFTMAXES = 150, 1024, 4
ROUNDS, HOPS_ROUNDS, CALLS = 9, 200, 40
WHOLE = """
import sys
import numpy as np
import tightship

feeds = dict(np.load(sys.argv[2]))
with tightship.load(sys.argv[1]) as model:
    model.run(feeds)
    print("ready", flush=True)
    for line in sys.stdin:
        for _ in range(int(line)):
            model.run(feeds)
        print("done", flush=True)
"""


def measured(folder: Path) -> dict[str, object]:
    """Measure hops and throughput, on a node of their own."""
    with cluster_of(NODE_MIB):
        return {
            "processors": os.cpu_count(),
            "load_before": os.getloadavg()[0],
            "hop": hop(folder / "hop.onnx"),
            "throughput": throughput(folder),
            "load_after": os.getloadavg()[0],
        }


def hop(path: Path) -> dict[str, object]:
    """Measure calls through two and through four stages, and the same with classic calls."""
    path.write_bytes(softmaxes())
    feeds = {"x": np.random.default_rng(0).standard_normal((ROWS, COLUMNS), np.float32)}
    with tightship.load(path) as whole:
        whole.run(feeds)
        own = statistics.median(timed(lambda: whole.run(feeds)) for _ in range(HOPS_ROUNDS))
    rows: dict[str, list[float]] = {}
    with (
        cluster.pipeline(equal_stages(path, 2)) as two,
        cluster.pipeline(equal_stages(path, 4)) as four,
    ):
        for _ in range(HOPS_ROUNDS):
            for name, running in (("two", two), ("four", four)):
                for way, taken in calls(running, feeds):
                    rows.setdefault(name + way, []).append(taken)
    median = {name: statistics.median(times) for name, times in rows.items()}
    return {
        "bytes": ROWS * COLUMNS * 4,
        "whole_ms": round(own, 3),
        "call_ms": {name: round(each, 3) for name, each in median.items()},
        "hop_ms": round((median["four"] - median["two"]) / 2, 3),
        "classic_hop_ms": round((median["four_classic"] - median["two_classic"]) / 2, 3),
    }


def calls(running: cluster.Pipeline, feeds: dict[str, Array]) -> Iterator[tuple[str, float]]:
    """Yield the milliseconds of a call by channels, and of one by objects."""
    graph = running._calls.stages.graph
    objects = Objects(graph, running.actors)
    yield "", timed(lambda: running.run(feeds))
    yield "_classic", timed(lambda: objects.receive(objects.send(graph.divided(feeds))))


def throughput(folder: Path) -> dict[str, object]:
    """Measure two stages of equal time beside two processes, in turns."""
    model = stored("resnet50", folder)
    feeds = dict(np.load(model.feeds))
    ours, theirs = [], []
    command = [sys.executable, "-c", WHOLE, str(model.model), str(model.feeds)]
    with cluster.pipeline(balanced(model.model, feeds), in_flight=4) as running:
        processes = [
            subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
            for _ in range(2)
        ]
        waited(processes)
        for _ in range(ROUNDS):
            taken = timed(lambda: sum(1 for _ in running.run_each([feeds] * 2 * CALLS)))
            ours.append(2e3 * CALLS / taken)
            taken = timed(lambda: ran(processes))
            theirs.append(2e3 * CALLS / taken)
        for process in processes:
            process.communicate()
    ratios = sorted(a / b for a, b in zip(ours, theirs, strict=True))
    return {
        "model": "resnet50",
        "stages_per_s": round(statistics.median(ours), 1),
        "processes_per_s": round(statistics.median(theirs), 1),
        "ratios": [round(each, 3) for each in ratios],
        "ratio": round(statistics.median(ratios), 3),
    }


def ran(processes: Sequence["subprocess.Popen[str]"]) -> None:
    """Run the model so many times in each process, and wait."""
    for process in processes:
        assert process.stdin is not None
        process.stdin.write(f"{CALLS}\n")
        process.stdin.flush()
    waited(processes)


def waited(processes: Sequence["subprocess.Popen[str]"]) -> None:
    """Wait for a line of each process."""
    for process in processes:
        assert process.stdout is not None
        process.stdout.readline()


def timed(call: Callable[[], object]) -> float:
    """Return the milliseconds of a call."""
    started = time.perf_counter_ns()
    call()
    return (time.perf_counter_ns() - started) / 1e6


def equal_stages(path: Path, parts: int) -> list[Stage]:
    """Cut a model into equal numbers of steps."""
    found = Splitter.of(path, None, 1)
    last = len(found.table.cuts) - 1
    ends = [last * part // parts for part in range(parts + 1)]
    return [found.stage(pair, 0, 1 << 40) for pair in pairwise(ends)]


def balanced(path: Path, feeds: dict[str, Array]) -> list[Stage]:
    """Cut a model where half of its time has passed, as a profile of its steps says."""
    found = Splitter.of(path, None, 1)
    with tightship.load(path) as whole:
        steps = whole.profile(feeds, repeat=20).timing.steps
    times = [
        statistics.median(np.subtract(step.ends_ns, step.starts_ns).tolist()) for step in steps
    ]
    passed = np.concatenate([[0.0], np.cumsum(times)])[found.table.cuts]
    cut = int(np.abs(passed - passed[-1] / 2)[1:-1].argmin()) + 1
    last = len(found.table.cuts) - 1
    return [found.stage(pair, 0, 1 << 40) for pair in ((0, cut), (cut, last))]


def softmaxes() -> bytes:
    """Build a chain of operators that no pass joins, over 600 KB."""
    from onnx import TensorProto, helper

    names = ["x", *(f"v{index}" for index in range(SOFTMAXES - 1)), "y"]
    nodes = [helper.make_node("Softmax", [a], [b]) for a, b in pairwise(names)]
    row = TensorProto.FLOAT, [ROWS, COLUMNS]
    return onnx_model(nodes, [("x", *row)], [("y", *row)])
