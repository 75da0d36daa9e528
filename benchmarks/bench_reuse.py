"""Cost of the reuse of bytes at a given capacity, beside the best known.

    python -m benchmarks.bench_reuse FOLDER [--moves N] [--json]

FOLDER holds problems in the schema `dsa_rp_v1`, `A.json.gz` and so on. Every plan is verified, and
its cost counted anew. The best known are the smallest of all methods of dsa-solver on its lifts of
minimalloc's instances. That costs are counted as theirs are is checked on the way: first fit over
their order, largest first, then earliest, must cost and take what theirs does.
"""

import argparse
import json
import time
from pathlib import Path

from benchmarks import record

from tightship._core import sorted_rows
from tightship.planner import Problem, ReusePenalties, place, reduce_reuse, verified_reuse_cost
from tightship.planner.format import read_reuse_problem
from tightship.planner.placements.in_one_order import first_fit
from tightship.planner.reuse import MOVES
from tightship.planner.verify_reuse import reuse_cost

BEST_KNOWN = dict(
    zip("ABCDEFGHIJK", (285, 329, 365, 248, 403, 129, 450, 474, 902, 572, 1408), strict=True)
)

FIRST_FIT = dict(zip("ACEGIK", (326, 418, 461, 529, 973, 1485), strict=True))
"""Costs of dsa-solver's first fit, whose peak is the capacity of each problem."""

Row = dict[str, object]


def row(path: Path, moves: int) -> Row:
    """Costs before and after, and seconds."""
    problem, penalties = read_reuse_problem(path)
    name = path.name.partition(".")[0]
    plan = place(problem)
    start = time.perf_counter()
    reduced = reduce_reuse(plan, penalties, moves=moves)
    seconds = time.perf_counter() - start
    return {
        "problem": name,
        "buffers": problem.count,
        "capacity_bytes": problem.capacity_bytes,
        "first_fit": _first_fit_cost(name, problem, penalties),
        "packed": verified_reuse_cost(plan, penalties),
        "reduced": verified_reuse_cost(reduced, penalties),
        "best_known": BEST_KNOWN.get(name),
        "peak_bytes": reduced.peak_bytes,
        "seconds": round(seconds, 3),
    }


def _first_fit_cost(name: str, problem: Problem, penalties: ReusePenalties) -> int:
    """Return first fit's cost over dsa-solver's order; equal to theirs, where known."""
    order = sorted_rows([-problem.size_bytes, problem.start_step])
    offset_bytes = first_fit(problem, order)
    cost = reuse_cost(problem, penalties, offset_bytes)
    if name in FIRST_FIT:
        peak = int((offset_bytes + problem.size_bytes).max())
        assert (cost, peak) == (FIRST_FIT[name], problem.capacity_bytes), name
    return cost


def main() -> None:
    """Measure every problem of a folder; print it and keep it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--moves", type=int, default=MOVES)
    parser.add_argument("--quick", action="store_true", help="record nothing")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    rows = [row(path, options.moves) for path in sorted(options.folder.glob("*.json.gz"))]
    if not options.quick:
        record.append("bench_reuse", {"rows": rows})
    if options.json:
        print(json.dumps(rows))
        return
    for measured in rows:
        print("  ".join(f"{key} {value}" for key, value in measured.items()))


if __name__ == "__main__":
    main()
