"""Sizes of plans and times to find them, on published problems.

    python -m benchmarks.bench_planner --data FOLDER [--minimalloc BINARY] [SUITE ...]

The folder holds `minimalloc/*.CAPACITY.csv` and `torch_traces/*.csv`. Sizes are bytes as the files
have them, lifetimes half-open; weights and gradients count where the files list them. Every plan
is verified within its time. A MiniMalloc binary alternates with us, by its own clock.
"""

import argparse
import json
import re
import statistics
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from benchmarks import record
from benchmarks.derived import derived

from tightship._core import StopFlag
from tightship.planner import Plan, Problem, lower_bound, place
from tightship.planner.format import read_csv, write_csv

SEEDS = range(1, 7)
CURVE_SECONDS = (0.1, 1.0, 10.0)
CURVE_EFFORT = 10**11
ELAPSED = re.compile(r"Elapsed time\D*([\d.]+)(µs|us|ms|s)")
UNITS = {"µs": 1e-3, "us": 1e-3, "ms": 1.0, "s": 1e3}


@dataclass(frozen=True, slots=True)
class Row:
    """One problem; times are medians over the turns. `minimalloc_ms` is None without an answer."""

    suite: str
    name: str
    buffers: int
    capacity_bytes: int | None
    lower_bound_bytes: int
    peak_bytes: int
    status: str
    strategy: str
    median_ms: float
    least_ms: float
    minimalloc_ms: float | None = None
    gaps: Mapping[str, float] | None = None


@dataclass(frozen=True, slots=True)
class Options:
    """Folders of problems, and how often each is solved."""

    data: Path
    minimalloc: Path | None
    turns: int
    limit_s: int


def challenging(options: Options) -> Iterator[Row]:
    """Fit each problem into its capacity, on one thread."""
    for name, problem in _challenging(options.data):
        yield _fitted("challenging", name, problem, options, threads=1)


def from_others(options: Options) -> Iterator[Row]:
    """Fit problems derived from the same, once, on two threads."""
    once = replace(options, turns=1)
    for name, problem in _challenging(options.data):
        for seed in SEEDS:
            yield _fitted("derived", f"{name}/{seed}", derived(problem, seed), once, threads=2)


def minimise(options: Options) -> Iterator[Row]:
    """Find the smallest plan of the same problems, and its gap after a while."""
    for name, problem in _challenging(options.data):
        free = replace(problem, capacity_bytes=None)
        row, plan = _timed("minimise", name, options.turns, lambda free=free: place(free))
        gaps = {"0.0": plan.gap} if plan.status == "optimal" else _curve(free)
        yield replace(row, gaps=gaps)


def traces(options: Options) -> Iterator[Row]:
    """Plan deep-learning graphs, each in its own order of steps."""
    paths = sorted(options.data.glob("torch_traces/*.csv"))
    paths += [path for path in [options.data / "idealloc" / "resnet50.csv"] if path.exists()]
    for path in paths:
        problem, _ = read_csv(path)
        row, _ = _timed("traces", path.stem, options.turns, lambda problem=problem: place(problem))
        yield row


SUITES: Mapping[str, Callable[[Options], Iterator[Row]]] = {
    "challenging": challenging,
    "derived": from_others,
    "minimise": minimise,
    "traces": traces,
}


def _challenging(data: Path) -> Iterator[tuple[str, Problem]]:
    """Problems whose file names say which capacity they fit."""
    for path in sorted(data.glob("minimalloc/*.*.csv")):
        name, capacity = path.stem.split(".")
        if len(name) == 1 and capacity.isdecimal():
            yield name, read_csv(path, capacity_bytes=int(capacity))[0]


def _fitted(suite: str, name: str, problem: Problem, options: Options, threads: int) -> Row:
    theirs = []
    ours = []
    for _ in range(options.turns):
        if options.minimalloc is not None:
            theirs.append(_minimalloc_ms(options.minimalloc, problem, options.limit_s))
        ours.append(_timed(suite, name, 1, lambda: place(problem, goal="fit", threads=threads)))
    answered = [ms for ms in theirs if ms is not None]
    return replace(
        ours[0][0],
        median_ms=statistics.median(row.median_ms for row, _ in ours),
        least_ms=min(row.least_ms for row, _ in ours),
        minimalloc_ms=statistics.median(answered) if answered else None,
    )


def _timed(suite: str, name: str, turns: int, run: Callable[[], Plan]) -> tuple[Row, Plan]:
    times = []
    for _ in range(turns):
        start = time.perf_counter_ns()
        plan = run()
        times.append((time.perf_counter_ns() - start) / 1e6)
    problem = plan.problem
    row = Row(
        suite, name, problem.count, problem.capacity_bytes, lower_bound(problem), plan.peak_bytes,
        plan.status, plan.strategy, statistics.median(times), min(times),
    )  # fmt: skip
    return row, plan


def _curve(problem: Problem) -> dict[str, float]:
    """The gap of the plan that is there after so many seconds."""
    gaps = {}
    for seconds in CURVE_SECONDS:
        flag = StopFlag()
        timer = threading.Timer(seconds, flag.set)
        timer.start()
        gaps[str(seconds)] = place(problem, effort=CURVE_EFFORT, stop=flag).gap
        timer.cancel()
    return gaps


def _minimalloc_ms(binary: Path, problem: Problem, limit_s: int) -> float | None:
    """Return the time that the binary reports; None if it found no plan in time."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "problem.csv"
        write_csv(path, problem)
        try:
            done = subprocess.run(
                [binary, f"--capacity={problem.capacity_bytes}", f"--input={path}",
                 f"--output={folder}/plan.csv", "--validate", f"--timeout={limit_s}s"],
                capture_output=True, text=True, check=False, timeout=limit_s + 10,
            )  # fmt: skip
        except subprocess.TimeoutExpired:
            return None
        said = done.stdout + done.stderr
        elapsed = ELAPSED.search(said)
        if elapsed is None or "Validation PASS" not in said:
            return None
        return float(elapsed[1]) * UNITS[elapsed[2]]


def _line(row: Row) -> str:
    theirs = "" if row.minimalloc_ms is None else f"  minimalloc {row.minimalloc_ms:9.1f} ms"
    gaps = "" if row.gaps is None else "  gap " + ", ".join(
        f"{gap:.2%} at {seconds} s" for seconds, gap in row.gaps.items()
    )  # fmt: skip
    return (
        f"{row.name:32} {row.buffers:6} {row.status:10} {row.peak_bytes:14} "
        f"{row.peak_bytes / max(1, row.lower_bound_bytes):.4f} {row.median_ms:9.1f} ms "
        f"{row.strategy}{theirs}{gaps}"
    )


def _sum(rows: list[Row]) -> str:
    times = sorted(row.median_ms for row in rows)
    wanted = sum(
        row.status == "optimal" or (row.capacity_bytes is not None and row.status == "feasible")
        for row in rows
    )
    within = sum(time <= 1000 for time in times)
    return (
        f"{wanted} of {len(rows)} as wanted, {within} within 1 s; sum {sum(times):.1f} ms, "
        f"median {statistics.median(times):.1f} ms, longest {times[-1]:.1f} ms"
    )


def main() -> None:
    """Run suites and record what they found."""
    parser = argparse.ArgumentParser(description="How small plans are and how long they take.")
    parser.add_argument("suites", nargs="*", metavar="SUITE", help=f"of {', '.join(SUITES)}")
    parser.add_argument("--data", type=Path, required=True, help="folder with the problems")
    parser.add_argument(
        "--minimalloc", type=Path, help="its binary, which then alternates with ours"
    )
    parser.add_argument("--limit", type=int, default=30, help="seconds that it may take")
    parser.add_argument("--turns", type=int, default=5)
    parser.add_argument("--quick", action="store_true", help="one turn, nothing recorded")
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    unknown = set(given.suites) - set(SUITES)
    if unknown:
        parser.error(f"there is no suite {', '.join(sorted(unknown))}")
    options = Options(given.data, given.minimalloc, 1 if given.quick else given.turns, given.limit)
    rows = []
    for suite in given.suites or SUITES:
        found = list(SUITES[suite](options))
        rows += found
        if found and not given.json:
            print(f"{suite}\n" + "\n".join(map(_line, found)) + f"\n{_sum(found)}\n")
    if not rows:
        parser.error(f"`{options.data}` has no problems: folders such as `minimalloc` lie in it")
    figures = {"rows": [asdict(row) for row in rows]}
    if given.json:
        print(json.dumps(figures))
    if not given.quick:
        record.append("bench_planner", figures)


if __name__ == "__main__":
    main()
