"""Time to place many buffers, and the distance of the peak from the bound.

    python -m benchmarks.bench_large [--folder DIR] [--counts 1000,10000,...] [--json]

Sizes are bytes as given; those of the generators are multiples of 64. `fast` is `place` with no
effort, `quality` with the effort that 10 seconds of a 2020s core allow at a million buffers, `read`
is reading the CSV, `shell` is `tightship place` with the default effort. `cpu` is processor time.
"""

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TypeVar

import numpy as np
from benchmarks import record
from benchmarks.buffers import GENERATORS

from tightship.planner import lower_bound, place, verify_offsets
from tightship.planner.format import read_csv, write_csv
from tightship.planner.placements.in_one_order import best_fit

COUNTS = (1_000, 10_000, 100_000, 1_000_000)
QUALITY_EFFORT = 800_000_000
LARGE = ("S_1.csv", "pangu_2.6B.csv", "Y_1.csv")

Row = dict[str, object]
Result = TypeVar("Result")


def scale_row(kind: str, count: int, folder: Path) -> Row:
    """Seconds and gaps of one generator at one size."""
    problem = GENERATORS[kind](count)
    bound_s, bound = timed(lambda: lower_bound(problem))
    fast_s, placed = timed(lambda: best_fit(problem))
    verify_s, _ = timed(lambda: verify_offsets(problem, placed))
    cpu_start = time.process_time()
    quality_s, best = timed(lambda: place(problem, effort=QUALITY_EFFORT))
    quality_cpu_s = time.process_time() - cpu_start
    path = folder / f"{kind}{count}.csv"
    write_csv(path, problem)
    read_s, _ = timed(lambda: read_csv(path))
    shell_s, _ = timed(lambda: _shell(path, problem.total_bytes))
    peak = int((placed + problem.size_bytes).max())
    return {
        "problem": kind,
        "buffers": count,
        "bound_s": bound_s,
        "fast_s": fast_s,
        "fast_cpu_s": _cpu_s(lambda: best_fit(problem)),
        "fast_ratio": peak / bound,
        "verify_s": verify_s,
        "quality_s": quality_s,
        "quality_cpu_s": quality_cpu_s,
        "quality_ratio": best.peak_bytes / bound,
        "by": best.strategy,
        "read_s": read_s,
        "shell_s": shell_s,
        "working_set_bytes": _working_set(kind, count),
    }


def large_row(path: Path) -> Row:
    """Seconds and gap of a file's buffers."""
    read_s, (problem, _) = timed(lambda: read_csv(path))
    solve_s, plan = timed(lambda: place(problem))
    return {
        "problem": path.stem,
        "buffers": problem.count,
        "read_s": read_s,
        "solve_s": solve_s,
        "ratio": plan.peak_bytes / plan.lower_bound_bytes,
        "status": plan.status,
        "by": plan.strategy,
    }


def slope(rows: Sequence[Row], key: str) -> float:
    """Return how time grows with the number of buffers: the exponent of the best power of it."""
    counts = np.log([float(str(row["buffers"])) for row in rows])
    seconds = np.log([float(str(row[key])) for row in rows])
    return float(np.polyfit(counts, seconds, 1)[0])


def timed(call: Callable[[], Result]) -> tuple[float, Result]:
    """Seconds of a call, and what it returns."""
    start = time.perf_counter()
    result = call()
    return time.perf_counter() - start, result


def _cpu_s(call: Callable[[], object]) -> float:
    """Processor time of a call, least of three: most of what neighbours add is left out."""
    seconds = []
    for _ in range(3):
        start = time.process_time()
        call()
        seconds.append(time.process_time() - start)
    return min(seconds)


def _shell(path: Path, capacity: int) -> None:
    command = [
        sys.executable,
        "-m",
        "tightship.cli",
        "place",
        str(path),
        "--capacity",
        str(capacity),
    ]
    subprocess.run(command, check=True, capture_output=True)


MEASURE = """
import sys
from benchmarks.buffers import GENERATORS
from tightship.planner.placements import order
from tightship.planner.placements.in_one_order import lowest_first
problem = GENERATORS[sys.argv[1]](int(sys.argv[2]))
by = order.by_start(problem)
columns = problem.columns()
open("/proc/self/clear_refs", "w").write("5")
def high():
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) for line in status if line.startswith("VmHWM")) * 1024
before = high()
lowest_first(problem, by)
print(high() - before)
"""


def _working_set(kind: str, count: int) -> int:
    """Bytes by which placing raises what a process has resident at most."""
    done = subprocess.run(
        [sys.executable, "-c", MEASURE, kind, str(count)],
        check=True, capture_output=True, text=True,
    )  # fmt: skip
    return int(done.stdout)


def main() -> None:
    """Measure what the options say; print it and keep it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--folder", type=Path, help=f"where {', '.join(LARGE)} are")
    parser.add_argument("--counts", default=",".join(map(str, COUNTS)))
    parser.add_argument("--quick", action="store_true", help="record nothing")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    counts = [int(count) for count in options.counts.split(",")]
    paths = [options.folder / name for name in LARGE] if options.folder else []
    large = [large_row(path) for path in paths if path.exists()]
    scale: list[Row] = []
    with tempfile.TemporaryDirectory() as folder:
        for kind in GENERATORS:
            rows = [scale_row(kind, count, Path(folder)) for count in counts]
            rows[-1]["fast_slope"] = slope(rows, "fast_cpu_s")
            scale += rows
    figures: Row = {"large": large, "scale": scale}
    if not options.quick:
        record.append("bench_large", figures)
    if options.json:
        print(json.dumps(figures))
        return
    for row in (*large, *scale):
        print("  ".join(f"{key} {value:.4g}" if isinstance(value, float) else f"{key} {value}"
                        for key, value in row.items()))  # fmt: skip


if __name__ == "__main__":
    main()
