"""The slowest steps of a model beside what ONNX Runtime's profiler says.

    python -m benchmarks.step_times squeezenet
    python -m benchmarks.step_times shufflenet --top 20 --without shuffle_channels --threads 2

Steps are timed within whole runs, so that each finds the caches as they are then; a step's time is
the median over runs.
"""

import argparse
import json
import tempfile
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from benchmarks import models
from benchmarks.contender import ort_options
from numpy.typing import NDArray

from tightship.engine.arenas.arena_pool import ArenaPool
from tightship.engine.compile.compile_graph import Settings, prepare
from tightship.engine.program.program import LoweredStep, PrimitiveWork
from tightship.engine.run.executable import build
from tightship.engine.run.limits import Limits
from tightship.engine.run.profile import timed_run
from tightship.engine.weights.weight_store import WeightStore
from tightship.loading.opening import read_graph
from tightship.model.feeds import bind
from tightship.resource import HostResource

Arrays = Mapping[str, NDArray[Any]]


@dataclass(frozen=True, slots=True)
class Timed:
    """A step and the microseconds it takes."""

    operator: str
    implementation: str
    shapes: str
    median_us: float


def tightship_steps(model: Path, feeds: Arrays, settings: Settings, runs: int) -> list[Timed]:
    """Every step of the lowered program, in order."""
    placement = prepare(read_graph(str(model), settings), model.name, settings).placement
    executable = build(placement, WeightStore(HostResource()))
    fed = bind(placement.lowered, feeds, {})
    laps = []
    with ArenaPool(1).reserved(executable, Limits()) as arena:
        for _ in range(1 + runs):
            start, ends = timed_run(executable, arena, fed.external, fed.objects, Limits())
            laps.append(np.diff(ends, prepend=start))
    medians = np.median(np.array(laps[1:]), axis=0) / 1e3
    steps = placement.lowered.steps
    assert len(steps) == len(medians)
    return [
        Timed(step.operator, step.implementation, _shapes(step), float(taken))
        for step, taken in zip(steps, medians, strict=True)
    ]


def _shapes(step: LoweredStep) -> str:
    """Dimensions and layouts of the first three operands."""
    if isinstance(step.work, PrimitiveWork):
        described = [
            f"{'x'.join(map(str, operand.desc.dims))}:{operand.desc.format}"
            for _, operand in step.work.arguments
            if operand.desc is not None
        ]
        return " ".join(described[:3])
    return " ".join("x".join(map(str, operand.shape)) for operand in step.reads)


def ort_steps(model: Path, feeds: Arrays, threads: int, runs: int) -> list[Timed]:
    """Every node of ONNX Runtime's optimised graph, by its own profiler."""
    import onnxruntime  # type: ignore[import-untyped]

    options = ort_options(threads, [])
    options.enable_profiling = True
    with tempfile.TemporaryDirectory() as folder:
        options.profile_file_prefix = f"{folder}/profile"
        session = onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
        for _ in range(runs + 1):
            session.run(None, dict(feeds))
        events = json.loads(Path(session.end_profiling()).read_text(encoding="utf-8"))
    taken: dict[tuple[str, str, str], list[float]] = defaultdict(list)
    for event in events:
        if event.get("cat") == "Node" and event["name"].endswith("_kernel_time"):
            given = event["args"]["input_type_shape"]
            shapes = " ".join("x".join(map(str, d)) for each in given for d in each.values())
            taken[event["args"]["op_name"], event["name"], shapes].append(event["dur"])
    return [
        Timed(operator, "", shapes, float(np.median(durations)))
        for (operator, _, shapes), durations in taken.items()
    ]


def by_kind(steps: list[Timed]) -> str:
    """Totals by operator and implementation, largest first."""
    totals: dict[tuple[str, str], list[float]] = defaultdict(list)
    for step in steps:
        totals[step.operator, step.implementation].append(step.median_us)
    lines = [f"{'us':>9}{'steps':>7}  operator, implementation"]
    for (operator, implementation), each in sorted(totals.items(), key=lambda kv: -sum(kv[1])):
        lines.append(f"{sum(each):>9.0f}{len(each):>7}  {operator} {implementation}".rstrip())
    lines.append(f"{sum(step.median_us for step in steps):>9.0f}{len(steps):>7}  in all")
    return "\n".join(lines)


def slowest(steps: list[Timed], count: int) -> str:
    """The slowest steps, at most 100 columns each."""
    order = sorted(steps, key=lambda step: -step.median_us)[:count]
    return "\n".join(
        f"{s.median_us:>9.1f}  {s.operator:<20.20} {s.implementation:<18.18} {s.shapes:.48}"
        for s in order
    )


def main() -> None:
    """Profile both, print."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.step_times")
    parser.add_argument("model", help=f"NAME or NAME@BATCH; {', '.join(models.NAMES)}")
    parser.add_argument("--top", type=int, default=12)
    parser.add_argument("--runs", type=int, default=21)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--without", action="append", default=[], metavar="PASS")
    parser.add_argument("--folder", type=Path, help="keep the model here between runs")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="tightship-bench-") as temporary:
        folder = options.folder or Path(temporary)
        stored = models.stored(options.model, folder)
        with np.load(stored.feeds) as arrays:
            feeds = dict(arrays)
        shapes = {name: array.shape for name, array in feeds.items()}
        settings = Settings(shapes, threads=options.threads, without=options.without)
        profiles = {
            "tightship": tightship_steps(stored.model, feeds, settings, options.runs),
            "ONNX Runtime": ort_steps(stored.model, feeds, options.threads, options.runs),
        }
        for title, steps in profiles.items():
            print(f"{title}\n{by_kind(steps)}\n{slowest(steps, options.top)}\n")


if __name__ == "__main__":
    main()
