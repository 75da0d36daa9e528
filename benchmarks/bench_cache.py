"""Operators made for each call, on memory of theirs, against pools and against a plan.

    python -m benchmarks.bench_cache [--models resnet50,bert] [--rounds 15] [--record]

The variants alternate in one process, every other round in reverse. Their results are the plan's
bit for bit, or nothing is timed. A turn is one untimed run, then a timed one. `kernels` is the
planned run's own: the sum of its steps' times, and what a run takes beside them. SSDlite ends in
steps that data decide, which operators made for each call lack; `ssdlite_scores` is all before.
"""

import argparse
import ctypes
import json
import resource
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from benchmarks.contender import load
from benchmarks.models import stored
from benchmarks.record import append

import tightship
from tightship._core import PoolManager, PrimitiveCache
from tightship.engine.compile.compile_graph import Settings, prepare
from tightship.engine.run.stepwise import LIBRARY_MANAGED, PLAIN, Pattern, Stepwise
from tightship.engine.weights.weight_store import WeightStore
from tightship.frontend.onnx import open_file
from tightship.model import feeds
from tightship.resource import HostResource

UNBOUNDED = 1 << 40
PR_SET_THP_DISABLE = 41


@dataclass(frozen=True, slots=True)
class Variant:
    """Way in which operators and memory are obtained.

    Attributes:
        what: For the table.
        pattern: Weights packed for each call, or kept.
        is_cached: Memory comes from pools that are kept, or from the system each time.
        entries: Capacity of its primitive cache; 0 compiles for each call.
        has_huge_pages: Whether the system may give them; frameworks' allocators do not ask.
    """

    what: str
    pattern: Pattern = LIBRARY_MANAGED
    is_cached: bool = False
    entries: int = 1024
    has_huge_pages: bool = False


VARIANTS = {
    "created": Variant(
        "operators compiled, memory on demand, weights packed for each call", entries=0
    ),
    "on_demand": Variant("memory on demand, weights packed for each call"),
    "on_demand_huge": Variant("the same, in huge pages", has_huge_pages=True),
    "pools": Variant("memory from cached pools, weights packed for each call", is_cached=True),
    "kept": Variant("memory from cached pools, weights packed once", PLAIN, is_cached=True),
}
PLANNED = "planned"
YARDSTICK = "onnxruntime"
"""Measure of the machine's speed: ONNX Runtime, which alternates with the variants."""
RATIOS = (
    ("on_demand", "pools"), ("created", "pools"), ("on_demand", PLANNED), ("created", PLANNED),
    ("pools", PLANNED), ("kept", PLANNED), (YARDSTICK, PLANNED),
)  # fmt: skip


@dataclass(slots=True)
class Contender:
    """A variant, ready to run, and what was measured of it."""

    run: Callable[[], None]
    stepwise: Stepwise | None = None
    pools: PoolManager | None = None
    wall_ns: list[int] = field(default_factory=list)
    cpu_ns: list[int] = field(default_factory=list)
    faults: list[int] = field(default_factory=list)
    memory_ns: list[int] = field(default_factory=list)
    primitives_ns: list[int] = field(default_factory=list)

    def turn(self) -> None:
        """One untimed run, and one timed."""
        self.run()
        faults = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
        wall, cpu = time.perf_counter_ns(), time.process_time_ns()
        self.run()
        self.cpu_ns.append(time.process_time_ns() - cpu)
        self.wall_ns.append(time.perf_counter_ns() - wall)
        self.faults.append(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - faults)
        if self.stepwise is not None:
            self.memory_ns.append(self.stepwise.memory_ns)
            self.primitives_ns.append(self.stepwise.primitives_ns)


def main(arguments: Sequence[str]) -> None:
    """Measure, print, and record where asked."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.bench_cache")
    parser.add_argument("--models", default="resnet50,bert")
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--folder", type=Path)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--record", action="store_true")
    options = parser.parse_args(arguments)
    with folder_of(options.folder) as folder:
        figures = {
            name: measured(name, folder, options.rounds) for name in options.models.split(",")
        }
    if options.json:
        sys.stdout.write(json.dumps(figures) + "\n")
    else:
        for name, found in figures.items():
            sys.stdout.write(table(name, found))
    if options.record:
        append("bench_cache", {"rounds": options.rounds, "models": figures})


@contextmanager
def folder_of(given: Path | None) -> Iterator[Path]:
    """The folder given, or one that goes."""
    if given is not None:
        yield given
        return
    with tempfile.TemporaryDirectory() as made:
        yield Path(made)


def measured(name: str, folder: Path, rounds: int) -> dict[str, Any]:
    """Figures of one model, by variant, and the ratios between them."""
    file = stored(name, folder)
    with np.load(file.feeds) as arrays:
        inputs = dict(arrays)
    shapes = {key: array.shape for key, array in inputs.items()}
    with tightship.load(file.model, shapes=shapes) as model:
        wanted = model.run(inputs)
        contenders = {
            key: contender(variant, file.model, inputs, wanted) for key, variant in VARIANTS.items()
        }
        contenders[PLANNED] = Contender(lambda: void(model.run(inputs)))
        yardstick = load("ort", file.model, inputs).run
        contenders[YARDSTICK] = Contender(lambda: void(yardstick()))
        order = list(contenders.values())
        for _ in range(rounds):
            for each in order:
                each.turn()
            order.reverse()
        arena_bytes = model.plan.arena_bytes
        alone = over_kernels(model, inputs, rounds)
    return {
        "variants": {
            key: figures_of(each, arena_bytes if key == PLANNED else 0)
            for key, each in contenders.items()
        },
        "ratios": {f"{a}/{b}": ratios(contenders[a], contenders[b]) for a, b in RATIOS}
        | {f"{PLANNED}/kernels": alone},
    }


def over_kernels(model: tightship.Model, inputs: Mapping[str, Any], rounds: int) -> list[float]:
    """Median over rounds of a run's time over the sum of the times of its steps, as a pair."""
    found = []
    for _ in range(rounds):
        began = time.perf_counter_ns()
        model.run(inputs)
        whole = time.perf_counter_ns() - began
        found.append(whole / model.profile(inputs, repeat=1).timing.steps_ns)
    return [round(statistics.median(found), 3)] * 2


def void(_: object) -> None:
    """Nothing."""


def contender(
    variant: Variant, path: Path, inputs: Mapping[str, Any], wanted: Mapping[str, Any]
) -> Contender:
    """A variant whose results are right."""
    shapes = {key: array.shape for key, array in inputs.items()}
    placement = prepare(open_file(path).graph(shapes), path.name, Settings(shapes)).placement
    pools = PoolManager(UNBOUNDED)
    cache = PrimitiveCache(variant.entries, UNBOUNDED, pools, is_cached=variant.is_cached)
    store = WeightStore(HostResource())
    stepwise = Stepwise(placement, cache, HostResource(), store, variant.pattern)
    fed = feeds.bind(placement.lowered, inputs, {})

    def run() -> None:
        with pages(is_huge=variant.has_huge_pages):
            stepwise.run(fed.external)

    run()
    for name, operand in placement.lowered.outputs.items():
        np.testing.assert_array_equal(fed.external[operand.slot], wanted[name])
    return Contender(run, stepwise, pools)


@contextmanager
def pages(*, is_huge: bool) -> Iterator[None]:
    """Fresh memory of this process in small pages meanwhile, unless huge ones are allowed."""
    libc = ctypes.CDLL(None)
    libc.prctl(PR_SET_THP_DISABLE, int(not is_huge), 0, 0, 0)
    try:
        yield
    finally:
        libc.prctl(PR_SET_THP_DISABLE, 0, 0, 0, 0)


def figures_of(each: Contender, arena_bytes: int) -> dict[str, float]:
    """Medians; bytes of the memory that values, scratch and repacked weights took at most."""
    held = arena_bytes if each.pools is None else each.pools.statistics().peak_bytes
    return {
        "ms": round(statistics.median(each.wall_ns) / 1e6, 2),
        "least_ms": round(min(each.wall_ns) / 1e6, 2),
        "cpu_ms": round(statistics.median(each.cpu_ns) / 1e6, 2),
        "faults": statistics.median(each.faults),
        "memory_ms": round(statistics.median(each.memory_ns or [0]) / 1e6, 2),
        "primitives_ms": round(statistics.median(each.primitives_ns or [0]) / 1e6, 2),
        "peak_bytes": held,
    }


def ratios(one: Contender, other: Contender) -> list[float]:
    """Median over rounds of the ratio of times, and of processor times."""
    pairs = (one.wall_ns, other.wall_ns), (one.cpu_ns, other.cpu_ns)
    return [round(statistics.median(a / b for a, b in zip(x, y, strict=True)), 2) for x, y in pairs]


def table(name: str, found: Mapping[str, Any]) -> str:
    """Format the results of a model, and where its time goes."""
    variants = found["variants"]
    columns = tuple(next(iter(variants.values())))
    lines = [f"{name:16}" + "".join(f"{column:>14}" for column in columns)]
    for key, row in variants.items():
        lines.append(f"{key:16}" + "".join(f"{row[column]:14}" for column in columns))
    ms = {key: row["cpu_ms"] for key, row in variants.items()}
    parts = {
        "compiling operators": ms["created"] - ms["on_demand"],
        "fresh memory: faults, mapping": ms["on_demand"] - ms["pools"],
        "packing weights": ms["pools"] - ms["kept"],
        "pools in place of a plan": ms["kept"] - ms[PLANNED],
    }
    lines += [f"  {what:32} {value:8.2f} ms of processor time" for what, value in parts.items()]
    common = ms["pools"] - ms["kept"] + ms[PLANNED]
    wasted = ms["created"] - ms["pools"]
    lines += [
        f"  {'were computing a third faster':32} {1 + wasted / (common - ms[PLANNED] / 3):8.2f}"
        " created/pools"
    ]
    lines += [
        f"  {pair:32} {wall:8.2f} (processor time {cpu:.2f})"
        for pair, (wall, cpu) in found["ratios"].items()
    ]
    return "\n".join(lines) + "\n\n"


if __name__ == "__main__":
    main(sys.argv[1:])
