"""Computes a lower bound on the peak of any plan."""

from tightship._core import lower_bound as _lower_bound
from tightship.planner.problem import Problem
from tightship.public_calls import public_call


@public_call
def lower_bound(problem: Problem) -> int:
    """Compute a number of bytes below which no plan of the problem has its peak.

    The bound is the largest live bytes of any step, with sizes rounded up to the smallest alignment
    of any buffer, less the padding that the topmost buffer of a step may leave out. With
    constraints, bytes that a group shares count once, and forbidden bytes below the top of the live
    bytes are added. With banks, the bound is on the sum of their peaks.

    Args:
        problem: n buffers.

    Returns:
        The bound in bytes.

    Complexity: close to linear.
    """
    if problem.constraints is None:
        return _lower_bound(problem.columns())
    from tightship.planner.constrained.bound import constrained_bound  # few problems need it

    return constrained_bound(problem, problem.constraints)
