"""Answers of planners, and their check: what an order of runs takes and costs."""

from collections.abc import Sequence
from dataclasses import dataclass

from benchmarks.rematerialization.layers import Work


@dataclass(frozen=True, slots=True)
class Answer:
    """A planner's answer for one budget.

    Attributes:
        runs: Nodes in the order in which they run; empty if none was found.
        least_added: Operations that the planner proves to be needed within the budget; 0 if none.
        is_optimal: Whether it proves that its own answer is the best.
    """

    runs: tuple[int, ...] = ()
    least_added: int = 0
    is_optimal: bool = False


def measured(work: Work, runs: Sequence[int]) -> tuple[int, int]:
    """Return the peak of live bytes of an order of runs, and the operations that it adds.

    A run reads what was written last. A value is live from the run that writes it to the last that
    reads it, that run included.

    Raises:
        ValueError: A node does not run, or reads what is not there.
    """
    if set(runs) != set(range(work.count)):
        raise ValueError("a node does not run")
    latest: dict[int, int] = {}
    stop = list(range(len(runs)))
    for place, node in enumerate(runs):
        for read in work.reads[node]:
            if read not in latest:
                raise ValueError(f"{work.names[node]} reads {work.names[read]} before it is there")
            stop[latest[read]] = place
        latest[node] = place
    stop[latest[work.count - 1]] = len(runs)
    change = [0] * (len(runs) + 2)
    for place, node in enumerate(runs):
        change[place] += work.sizes[node]
        change[stop[place] + 1] -= work.sizes[node]
    peak = load = 0
    for each in change:
        load += each
        peak = max(peak, load)
    return peak, sum(work.costs[node] for node in runs) - work.operations
