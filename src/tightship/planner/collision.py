"""Describes two buffers that overlap."""

from tightship.errors import InvalidPlanError
from tightship.planner.problem import Problem

Span = tuple[int, int]
"""A half-open range `[start, stop)` of bytes or steps."""


def collision(
    problem: Problem, buffers: tuple[int, int], of_bytes: Span, of_steps: Span
) -> InvalidPlanError:
    """Build the error for two buffers that share bytes `of_bytes` in steps `of_steps`."""
    one, other = sorted(buffers)
    return InvalidPlanError(
        f"Buffers {problem.label(one)} and {problem.label(other)} overlap: bytes "
        f"[{of_bytes[0]}, {of_bytes[1]}) in steps [{of_steps[0]}, {of_steps[1]})."
    )
