"""Compares recomputation with Checkmate, Moccasin and Dynamic Tensor Rematerialization.

    python -m benchmarks.bench_rematerialization [NETWORK ...] [--seconds 30] [--record]

Needs `scipy` and `ortools`. The graphs have one node per layer, forward and back, as the papers'
(`rematerialization/layers.py`), and nothing in place, so that all planners have the same choices.
Budgets lie between the largest node with what it reads and the peak without recomputation. Each
answer is counted by the same code: peak of live bytes, and operations added as a share of all. Ours
is also placed, and the plan verified. Checkmate's program and Moccasin's get some seconds each and
two threads at most; graphs beyond `NODES_MAX` are left to the others. `least` is what a minimum cut
(`recompute_bound`) or Checkmate's solver proves, whichever is more.
"""

import argparse
import sys
import time
from collections.abc import Iterator, Sequence

from benchmarks.record import append
from benchmarks.rematerialization.answer import Answer, measured
from benchmarks.rematerialization.checkmate import checkmate
from benchmarks.rematerialization.dtr import dtr
from benchmarks.rematerialization.layers import NETWORKS, Work
from benchmarks.rematerialization.moccasin import moccasin

from tightship.planner import verify
from tightship.planner.recompute_bound import least_bytes, least_operations
from tightship.planner.squeeze import Squeezing

SHARES = (0.6, 0.35, 0.2)
"""Budgets between the floor and the peak without recomputation."""

NODES_MAX = 150
"""Most nodes of a graph that the exact programs are tried on."""

Row = dict[str, object]
MIB = 2**20


def rows_of(name: str, seconds: float) -> Iterator[Row]:
    """Compare the planners on one network, budget by budget."""
    work = NETWORKS[name]()
    squeezing = Squeezing(work.schedule(), work.costs)
    floor, most = least_bytes(work.schedule()), work.peak_bytes()
    for share in SHARES:
        budget = floor + int((most - floor) * share)
        started = time.process_time()
        ours = squeezing.within(budget)
        row: Row = {
            "network": name,
            "nodes": work.count,
            "budget_mib": round(budget / MIB, 2),
            "budget_percent": round(100 * budget / most, 1),
            "ours": _counted(work, Answer(ours.origin), budget),
            "ours_seconds": round(time.process_time() - started, 2),
        }
        verify(ours.plan.plan)
        least = least_operations(work.schedule(), work.costs, budget)
        row["dtr"] = _counted(work, dtr(work, budget), budget)
        for planner in (checkmate, moccasin) if seconds and work.count <= NODES_MAX else ():
            answer = planner(work, budget, seconds)
            least = max(least, answer.least_added)
            row[planner.__name__] = _counted(work, answer, budget)
            row[f"{planner.__name__}_is_optimal"] = answer.is_optimal
        row["least"] = _percent(work, least)
        yield row


def _percent(work: Work, added: int) -> float:
    return round(100 * added / work.operations, 2)


def _counted(work: Work, answer: Answer, budget: int) -> float | None:
    """Return the operations that an answer adds, in percent; None if it exceeds the budget."""
    if not answer.runs:
        return None
    peak, added = measured(work, answer.runs)
    return _percent(work, added) if peak <= budget else None


def main(arguments: Sequence[str]) -> None:
    """Compare, print, and record where asked."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.bench_rematerialization")
    parser.add_argument("networks", nargs="*", metavar="NETWORK", help="; ".join(NETWORKS))
    parser.add_argument(
        "--seconds", type=float, default=30, help="for each program; 0 leaves both out"
    )
    parser.add_argument("--record", action="store_true")
    options = parser.parse_args(arguments)
    for name in options.networks or NETWORKS:
        rows = []
        for row in rows_of(name, options.seconds):
            rows.append(row)
            sys.stdout.write(", ".join(f"{key} {value}" for key, value in row.items()) + "\n")
            sys.stdout.flush()
        if options.record:
            append(
                "bench_rematerialization", {"suite": name, "seconds": options.seconds, "rows": rows}
            )


if __name__ == "__main__":
    main(sys.argv[1:])
