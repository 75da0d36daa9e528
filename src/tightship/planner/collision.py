"""What two buffers that overlap share, in words."""

from tightship.errors import InvalidPlanError
from tightship.planner.problem import Problem

Span = tuple[int, int]
"""Where something starts and stops."""


def collision(
    problem: Problem, buffers: tuple[int, int], of_bytes: Span, of_steps: Span
) -> InvalidPlanError:
    """What two buffers share: bytes `[start, stop)` in steps `[start, stop)`."""
    one, other = sorted(buffers)
    return InvalidPlanError(
        f"Buffers {problem.label(one)} and {problem.label(other)} overlap: bytes "
        f"[{of_bytes[0]}, {of_bytes[1]}) in steps [{of_steps[0]}, {of_steps[1]})."
    )
