"""What no plan can go below."""

from tightship._core import lower_bound as _lower_bound
from tightship.planner.problem import Problem


def lower_bound(problem: Problem) -> int:
    """Bytes that every plan of the problem needs.

    The largest load over the steps, sizes rounded up to the smallest alignment of any buffer,
    less the padding that the topmost buffer of a step may leave out.

    Complexity: O(n log n).
    """
    return _lower_bound(problem.columns())
