"""Latency against ONNX Runtime, one process per contender taking turns.

    python -m benchmarks.bench_engine                          # all models, 1 thread
    python -m benchmarks.bench_engine --threads 1,2 --models resnet50,bert
    python -m benchmarks.bench_engine --without library_layouts --models light --quick

Every contender's outputs are compared with ONNX Runtime's before anything is timed.
"""

import argparse
import json
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

import numpy as np
from benchmarks import models, record
from benchmarks.turn import Timing, Worker, neighbour

REFERENCE = "ort"
TURN_S = 0.08
GAP_S = 0.02
ORT_VARIANTS = ["ort-nopattern", "ort-noarena", "ort-extended"]
RELATIVE = 1e-3
RELATIVE_QUANTIZED = 5e-2
"""Tolerance for models in eight bits: a number on the edge between two steps goes either way.

Also for products of bfloat16, `tightship-float32_products`, which have as many digits.
"""
RELATIVE_DYNAMIC = 2e-1
"""Tolerance for models whose scales come from the data.

A step taken the other way changes every scale after it. ONNX Runtime with and without its own
fusions is 9e-2 apart on `bert_int8`.
"""


@dataclass(frozen=True, slots=True)
class Row:
    """One contender on one model.

    `ratio` and its quartiles are over rounds, each the contender's median time over ONNX
    Runtime's in the same round; `cpu_ratio` the same for processor time, which neighbours
    disturb less. `least_ms` is the fastest run of all.
    """

    model: str
    threads: int
    contender: str
    median_ms: float
    least_ms: float
    ratio: float
    quartiles: tuple[float, float]
    cpu_ratio: float
    difference: float


@dataclass(slots=True)
class Found:
    """Results of a benchmark so far."""

    rows: list[Row] = field(default_factory=list)
    failures: list[str] = field(default_factory=list)
    versions: dict[str, str] = field(default_factory=dict)

    def figures(self) -> dict[str, object]:
        """Return the figures as they are recorded."""
        rows = [asdict(each) for each in self.rows]
        return {"runtime": self.versions, "rows": rows, "failures": self.failures}


def verified(workers: Sequence[Worker], folder: Path, model: str) -> dict[str, float]:
    """Largest difference from ONNX Runtime, by contender, relative to the largest output.

    Raises:
        ValueError: A contender's outputs differ by more than allowed, or are not finite.
    """
    outputs = {}
    for worker in workers:
        path = folder / "outputs.npz"
        worker.save(path)
        with np.load(path) as arrays:
            outputs[worker.contender] = dict(arrays)
    expected = outputs[REFERENCE]
    found = {}
    for contender, arrays in outputs.items():
        found[contender] = max(difference(arrays[name], expected[name]) for name in expected)
        if not found[contender] <= allowed_difference(model, contender):
            message = f"`{contender}` is wrong by {found[contender]:.1e} of the largest output."
            raise ValueError(message)
    return found


def difference(actual: np.ndarray, expected: np.ndarray) -> float:
    """Largest absolute difference over the largest absolute value; infinite if not finite."""
    if actual.shape != expected.shape or not np.isfinite(actual).all():
        return float("inf")
    scale = max(float(np.abs(expected).max(initial=0)), 1e-30)
    apart = np.abs(actual.astype(np.float64) - expected.astype(np.float64))
    return float(apart.max(initial=0)) / scale


def allowed_difference(model: str, contender: str) -> float:
    """Return a contender's tolerance on a model, relative to ONNX Runtime's largest output."""
    if contender.endswith("-float32_products"):
        return RELATIVE_QUANTIZED
    if models.is_dynamically_quantized(model):
        return RELATIVE_DYNAMIC
    return RELATIVE_QUANTIZED if models.is_quantized(model) else RELATIVE


def turns(workers: Sequence[Worker], rounds: int) -> dict[str, list[Timing]]:
    """Timings by contender, one per round; every other round goes backwards."""
    counts = {}
    for worker in workers:
        took_s = worker.turn(3).wall_ns / 1e9
        counts[worker.contender] = max(1, min(50, round(TURN_S / took_s)))
    timings: dict[str, list[Timing]] = {worker.contender: [] for worker in workers}
    for index in range(rounds):
        for worker in workers[:: 1 if index % 2 == 0 else -1]:
            time.sleep(GAP_S)
            timings[worker.contender].append(worker.turn(counts[worker.contender]))
    return timings


def row(model: str, threads: int, name: str, timings: dict[str, list[Timing]], wrong: float) -> Row:
    """Summarise one contender's turns."""
    own, reference = timings[name], timings[REFERENCE]
    ratios = [a.wall_ns / b.wall_ns for a, b in zip(own, reference, strict=True)]
    cpu = [a.cpu_ns / b.cpu_ns for a, b in zip(own, reference, strict=True)]
    low, middle, high = np.quantile(ratios, (0.25, 0.5, 0.75))
    return Row(
        model, threads, name,
        median_ms=round(float(np.median([t.wall_ns for t in own])) / 1e6, 3),
        least_ms=round(min(t.least_ns for t in own) / 1e6, 3),
        ratio=round(float(middle), 3),
        quartiles=(round(float(low), 3), round(float(high), 3)),
        cpu_ratio=round(float(np.median(cpu)), 3),
        difference=float(f"{wrong:.1e}"),
    )  # fmt: skip


def race(
    model: str, threads: int, contenders: Sequence[str], folder: Path, rounds: int
) -> tuple[list[Row], dict[str, str]]:
    """All contenders on one model, and the versions they report."""
    stored = models.stored(model, folder)
    workers: list[Worker] = []
    versions: dict[str, str] = {}
    try:
        for contender in contenders:
            name, _, source = contender.partition("@")
            workers.append(Worker(name, stored, threads, source))
            workers[-1].contender = contender
            versions |= workers[-1].versions
        wrong = verified(workers, folder, model)
        timings = turns(workers, rounds)
    finally:
        for worker in workers:
            worker.close()
    versions.pop("without", None)
    return [row(model, threads, name, timings, wrong[name]) for name in contenders], versions


HEADER = (
    f"{'model':<24}{'thr':>3}  {'contender':<20}{'median ms':>9}{'least':>8}"
    f"{'ratio':>7}  {'quartiles':<13} {'cpu':>6}"
)


def line(row: Row) -> str:
    """A row of the table, at most 100 columns."""
    low, high = row.quartiles
    contender = row.contender if len(row.contender) < 20 else "…" + row.contender[-18:]
    return (
        f"{row.model:<24}{row.threads:>3}  {contender:<20}{row.median_ms:>9.2f}{row.least_ms:>8.2f}"
        f"{row.ratio:>7.3f}  {f'{low:.3f}-{high:.3f}':<13} {row.cpu_ratio:>6.3f}"
    )


def arguments() -> argparse.Namespace:
    """Parse the command line."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.bench_engine")
    parser.add_argument(
        "--models",
        default="all",
        help=f"comma-separated, NAME@8 at batch 8; {', '.join(models.GROUPS)}",
    )
    parser.add_argument("--batch", default="1", help="comma-separated, for models without one")
    parser.add_argument("--threads", default="1", help="comma-separated counts")
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--without", action="append", default=[], metavar="PASS[-PASS]",
                        help="add Tightship without these passes")  # fmt: skip
    parser.add_argument("--contender", action="append", default=[],
                        help="add ort-SETTING, or tightship@SOURCE of another tree")  # fmt: skip
    parser.add_argument("--ort-variants", action="store_true", help="add every variant of ORT")
    parser.add_argument("--neighbour", type=int, metavar="PROCESSOR",
                        help="keep a processor busy with a loop of another process")  # fmt: skip
    parser.add_argument("--folder", type=Path, help="keep the models here between runs")
    parser.add_argument("--quick", action="store_true", help="5 rounds, nothing recorded")
    parser.add_argument("--json", action="store_true", help="print JSON lines instead of a table")
    return parser.parse_args()


def _race(
    name: str,
    threads: int,
    setting: tuple[Sequence[str], Path, argparse.Namespace],
    found: Found,
) -> None:
    """Race one model, print, and add to what was found."""
    contenders, folder, options = setting
    try:
        with neighbour(options.neighbour):
            rows, said = race(
                name, threads, contenders, folder, 5 if options.quick else options.rounds
            )
    except (ChildProcessError, ValueError, models.NotHadError) as error:
        found.failures.append(f"{name}, {threads} threads: {error}")
        print(f"{name:<24}{threads:>3}  not timed: {error}", flush=True)
        return
    found.versions |= said
    found.rows += rows
    for each in rows:
        print(json.dumps(asdict(each)) if options.json else line(each), flush=True)


def main() -> None:
    """Race, print, record after every model."""
    options = arguments()
    contenders = [REFERENCE, "tightship", *(f"tightship-{p}" for p in options.without)]
    contenders += options.contender + (ORT_VARIANTS if options.ort_variants else [])
    contenders = list(dict.fromkeys(contenders))
    found = Found()
    kept = None if options.quick else record.begin("bench_engine")
    if not options.json:
        print(HEADER)
    with tempfile.TemporaryDirectory(prefix="tightship-bench-") as temporary:
        folder = options.folder or Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        for name in models.chosen(options.models, options.batch):
            for threads in map(int, options.threads.split(",")):
                _race(name, threads, (contenders, folder, options), found)
                if kept is not None:
                    kept.write(found.figures())
            if not options.folder:
                for path in folder.iterdir():
                    path.unlink()
    if kept is not None:
        print(f"recorded in {kept.path.relative_to(record.ROOT)}", file=sys.stderr)


if __name__ == "__main__":
    main()
