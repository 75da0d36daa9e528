"""Writes the output of `tightship run --profile`: the runs, the tiers, and the slowest steps."""

from statistics import median

from tightship.view.table import Column, table
from tightship.view.timing import TimedStep, Timing, grouped, taken_ns

TIERS = {"onednn": "oneDNN", "native": "native", "numpy": "NumPy", "reference": "onnx.reference"}


def timing_table(timing: Timing, *, top: int = 20, by_operator: bool = False) -> str:
    """Describe the times of a profile in lines of at most 100 columns.

    Args:
        timing: The profile.
        top: Most rows to show, slowest first; 20 by default.
        by_operator: Whether to sum steps of the same operator and implementation.
    """
    middle = median(timing.runs_ns) / 1e6
    lines = [
        f"{timing.title} · median of {len(timing.runs_ns)} runs {middle:.3f} ms, "
        f"{len(timing.steps)} steps, {timing.key.get('threads', '1')} thread(s)",
        f"reorders take {timing.reorder_share:.1%} of the steps' time",
        "",
    ]
    lines += _tiers(timing)
    lines.append("")
    lines += _operators(timing, top) if by_operator else _steps(timing, top)
    return "\n".join(lines) + "\n"


def _tiers(timing: Timing) -> list[str]:
    rows = [
        (TIERS.get(tier, tier), str(len(steps)), _ms(taken_ns(steps)), _share(timing, steps))
        for tier, steps in grouped(timing, lambda step: step.tier).items()
    ]
    return table([Column("tier"), *_numbers("steps", "ms", "share")], rows)


def _operators(timing: Timing, top: int) -> list[str]:
    groups = grouped(timing, lambda step: (step.operator, step.tier, step.implementation))
    rows = [
        (operator, _implementation(tier, implementation), str(len(steps)),
         _us(taken_ns(steps)), _share(timing, steps), _moved(steps), _rate(steps))
        for (operator, tier, implementation), steps in list(groups.items())[:top]
    ]  # fmt: skip
    columns = [Column("operator"), Column("implementation")]
    lines = table([*columns, *_numbers("steps", "us", "share", "MB", "GB/s")], rows)
    return lines + _rest(len(groups) - top, "group")


def _steps(timing: Timing, top: int) -> list[str]:
    order = sorted(timing.steps, key=lambda step: -step.median_ns)
    rows = [
        (step.name, step.operator, _implementation(step.tier, step.implementation),
         step.shapes, _us(step.median_ns), _share(timing, [step]), _moved([step]), _rate([step]))
        for step in order[:top]
    ]  # fmt: skip
    columns = [Column("step"), Column("operator"), Column("implementation"), Column("shapes")]
    lines = table([*columns, *_numbers("us", "share", "MB", "GB/s")], rows)
    return lines + _rest(len(order) - top, "step")


def _implementation(tier: str, implementation: str) -> str:
    """Join the tier and its name for the kernel, without repeating a word."""
    name = TIERS.get(tier, tier)
    own = implementation.removeprefix(f"{tier}:")
    return f"{name} {own}".strip() if own != name else name


def _numbers(*titles: str) -> list[Column]:
    return [Column(title, number=True) for title in titles]


def _rest(count: int, what: str) -> list[str]:
    return [f"and {count} more {what}{'s' if count > 1 else ''}"] if count > 0 else []


def _ms(nanoseconds: float) -> str:
    return f"{nanoseconds / 1e6:.3f}"


def _us(nanoseconds: float) -> str:
    return f"{nanoseconds / 1e3:.1f}"


def _share(timing: Timing, steps: list[TimedStep]) -> str:
    return f"{timing.share(taken_ns(steps)):.1%}"


def _moved(steps: list[TimedStep]) -> str:
    return f"{sum(step.read_bytes + step.written_bytes for step in steps) / 1e6:.2f}"


def _rate(steps: list[TimedStep]) -> str:
    taken = taken_ns(steps)
    moved = sum(step.read_bytes + step.written_bytes for step in steps)
    return f"{moved / taken:.1f}" if taken else "-"
