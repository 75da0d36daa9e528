"""Implements `tightship verify`: checks whether a plan, whichever tool made it, corrupts memory."""

import argparse
from pathlib import Path

from tightship.cli.output import show, show_json
from tightship.engine.stored.container import holds_prepared
from tightship.errors import InvalidPlanError
from tightship.loading.restoring import verify_prepared
from tightship.planner import Plan, lower_bound, verify_offsets
from tightship.planner.format import read_plan
from tightship.planner.format.problem_file import read_offsets
from tightship.planner.format.suffixes import holds_buffers
from tightship.quantity import format_bytes

VALID, INVALID = 0, 1


def run(options: argparse.Namespace) -> int:
    """Check a plan; print the overlap, or the memory that it takes."""
    path = Path(options.file)
    # The suffix is checked first, because opening a pipe would consume its content.
    if not holds_buffers(path) and holds_prepared(path):
        return _verify_prepared(path, as_json=options.json)
    try:
        facts = _judge(path, options.capacity)
    except InvalidPlanError as error:
        if options.json:
            show_json({"valid": False, "error": str(error)})
        else:
            show(f"{path.name}: not valid. {error}\n")
        return INVALID
    if options.json:
        show_json({"valid": True, **facts})
    else:
        peak, bound = facts["peak_bytes"], facts["lower_bound_bytes"]
        gap = f", {peak / bound - 1:.2%} above its lower bound" if bound else ""
        show(
            f"{path.name}: valid. {facts['buffer_count']:,} buffers in {peak} bytes "
            f"({format_bytes(peak)}){gap}\n"
        )
    return VALID


def _verify_prepared(path: Path, *, as_json: bool) -> int:
    """Check that a prepared model is unchanged since it was written; raise an error if not."""
    size = verify_prepared(path)
    if as_json:
        show_json({"valid": True, "weights_bytes": size})
    else:
        show(f"{path.name}: valid. Programs and {format_bytes(size)} of weights are as written\n")
    return VALID


def _judge(path: Path, capacity_bytes: int | None) -> dict[str, int]:
    """Verify a plan and return its memory.

    Raises:
        InvalidPlanError: Two buffers collide, one is misaligned, or the capacity is exceeded.
        FormatError, InputError, OSError: The file holds no plan.
    """
    problem, offsets = read_offsets(path, capacity_bytes=capacity_bytes)
    has_banks = problem.constraints is not None and problem.constraints.banks
    bank = read_plan(path).bank if has_banks else None  # only a plan in JSON has banks
    verify_offsets(problem, offsets, bank)
    tops = offsets + problem.size_bytes
    peak = Plan(problem, offsets, "given", 0, "feasible", bank).peak_bytes
    if capacity_bytes is not None and peak > capacity_bytes:
        index = int(tops.argmax())
        raise InvalidPlanError(
            f"Buffer {problem.label(index)} ends at byte {peak}; the capacity is "
            f"{capacity_bytes} bytes."
        )
    return {
        "peak_bytes": peak,
        "lower_bound_bytes": lower_bound(problem),
        "buffer_count": problem.count,
    }
