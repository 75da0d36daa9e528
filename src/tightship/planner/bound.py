"""What no plan can go below."""

from tightship._core import lower_bound as _lower_bound
from tightship.planner.problem import Problem


def lower_bound(problem: Problem) -> int:
    """Bytes that every plan of the problem needs.

    The largest load over the steps, sizes rounded up to the smallest alignment of any buffer,
    less the padding that the topmost buffer of a step may leave out. With constraints what a
    group shares counts once, and forbidden bytes below the top of a load count as well. The
    bound with banks is on the sum of their peaks.

    Complexity: close to linear.
    """
    if problem.constraints is None:
        return _lower_bound(problem.columns())
    from tightship.planner.constrained.bound import constrained_bound  # few problems need it

    return constrained_bound(problem, problem.constraints)
