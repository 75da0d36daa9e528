"""What two buffers that overlap share, in words."""

from tightship.errors import InvalidPlanError
from tightship.planner.problem import Int64Array, Problem


def collision(
    problem: Problem, offset_bytes: Int64Array, one: int, other: int, steps: str | None = None
) -> InvalidPlanError:
    """What two buffers that overlap share."""
    one, other = sorted((one, other))
    tops = [int(offset_bytes[index] + problem.size_bytes[index]) for index in (one, other)]
    start = max(problem.start_step[one], problem.start_step[other])
    stop = min(problem.stop_step[one], problem.stop_step[other])
    return InvalidPlanError(
        f"Buffers {problem.label(one)} and {problem.label(other)} overlap: bytes "
        f"[{max(offset_bytes[one], offset_bytes[other])}, {min(tops)}) in steps "
        f"{steps or f'[{start}, {stop})'}."
    )
