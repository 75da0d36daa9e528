"""Places the largest buffers first, each into its tightest gap."""

from tightship._core import place_best_gap
from tightship.planner.placements.order import by_size
from tightship.planner.problem import Int64Array, Problem


def greedy_by_size(problem: Problem) -> Int64Array:
    """Place the largest buffers first, each into the tightest gap that holds it.

    Returns:
        Offsets in bytes; int64 of shape (n,).

    Complexity: O(n k) for k buffers placed before.
    Source: Pisarchyk and Lee, "Efficient Memory Management for Deep Neural Net Inference", 2020:
    greedy by size for offset calculation.
    """
    return place_best_gap(problem.columns(), by_size(problem))
