"""What the reuse of bytes costs at a given capacity, beside the best known.

    python -m benchmarks.bench_reuse FOLDER [--moves N] [--json]

FOLDER holds problems in the schema `dsa_rp_v1`, `A.json.gz` and so on. A cost is the sum over the
pairs of buffers that share a byte; every plan is verified, and its cost counted anew. The best
known are the smallest of all methods of dsa-solver on its lifts of minimalloc's instances.
"""

import argparse
import json
import time
from pathlib import Path

from benchmarks import record

from tightship.planner import solve
from tightship.planner.format import read_reuse_problem
from tightship.planner.reuse import MOVES, reduce_reuse

BEST_KNOWN = dict(
    zip("ABCDEFGHIJK", (285, 329, 365, 248, 403, 129, 450, 474, 902, 572, 1408), strict=True)
)

Row = dict[str, object]


def row(path: Path, moves: int) -> Row:
    """Costs before and after, and seconds."""
    problem, penalties = read_reuse_problem(path)
    plan = solve(problem)
    start = time.perf_counter()
    reduced = reduce_reuse(plan, penalties, moves=moves)
    name = path.name.partition(".")[0]
    return {
        "problem": name,
        "buffers": problem.count,
        "capacity_bytes": problem.capacity_bytes,
        "peak_bytes": reduced.peak_bytes,
        "packed": penalties.cost(problem, plan.offset_bytes),
        "reduced": penalties.cost(problem, reduced.offset_bytes),
        "best_known": BEST_KNOWN.get(name),
        "seconds": round(time.perf_counter() - start, 3),
    }


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
