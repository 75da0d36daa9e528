"""Times the steps of runs, to show what takes a model's time."""

import json
import time
from collections.abc import Mapping
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tightship.atomic_file import write_text
from tightship.brief import brief, escaped
from tightship.engine.plan.memory_plan import MemoryPlan
from tightship.engine.program.program import LoweredStep, Operand
from tightship.engine.run.arena import Arena
from tightship.engine.run.executable import Executable, NativeSegment
from tightship.engine.run.executor import execute
from tightship.engine.run.limits import Limits
from tightship.view.timing import TimedStep, Timing
from tightship.view.timing_table import timing_table
from tightship.view.trace_events import timing_json, trace_events

Array = NDArray[Any]

PARTIAL_READERS = frozenset({"Gather", "GatherElements", "GatherND", "Slice", "Split"})
"""Operators that read only as much of their first operand as they write."""


@brief
@dataclass(frozen=True, slots=True)
class Profile:
    """Steps of a model and the time that each took, over some runs."""

    timing: Timing

    def table(self, *, top: int = 20, by_operator: bool = False) -> str:
        """Tabulate tiers, then steps or operators, slowest first.

        Args:
            top: Most rows of steps or operators; 20 by default.
            by_operator: Whether to sum steps of the same operator and implementation.
        """
        return timing_table(self.timing, top=top, by_operator=by_operator)

    def to_json(self) -> dict[str, object]:
        """Convert the profile to JSON values; times are named `*_ns`, amounts `*_bytes`."""
        return timing_json(self.timing)

    def _repr_html_(self) -> str:
        return f"<pre>{escaped(self.table())}</pre>"

    def save_trace(self, path: str | PathLike[str]) -> None:
        """Write trace events for Perfetto or `chrome://tracing`."""
        write_text(Path(path), json.dumps(trace_events(self.timing)) + "\n")


Lap = tuple[int, NDArray[np.int64]]
"""Time of `time.monotonic_ns` before a run's first step, and after each step."""


def timed_run(
    executable: Executable,
    arena: Arena,
    external: Mapping[int, Array],
    objects: dict[str, Any],
    limits: Limits,
) -> Lap:
    """Run every step once, as `execute` does, and record when each ended."""
    ends_ns = np.zeros(len(executable.placement.lowered.steps), np.int64)
    start_ns = time.monotonic_ns()
    execute(executable, arena, external, objects, limits, ends_ns)
    return start_ns, ends_ns


def profile_of(executable: Executable, plan: MemoryPlan, laps: list[Lap]) -> Profile:
    """Summarize timed runs."""
    runs = [_from_zero(start, ends) for start, ends in laps]
    steps = executable.placement.lowered.steps
    timed = [
        _timed(step, plan.steps[index].live_bytes, [(run[index], run[index + 1]) for run in runs])
        for index, step in enumerate(steps)
    ]
    lengths = tuple(run[-1] for run in runs)
    return Profile(Timing(plan.model, tuple(timed), lengths, _segments(executable), plan.key))


def _from_zero(start_ns: int, ends_ns: NDArray[np.int64]) -> list[int]:
    """Return 0 for the run's start, then the end of each step relative to it."""
    return [0, *(ends_ns - start_ns).tolist()]


def _timed(step: LoweredStep, live_bytes: int, laps: list[tuple[int, int]]) -> TimedStep:
    read, written = moved_bytes(step)
    return TimedStep(
        name=step.name,
        operator=step.operator,
        tier=step.kernel,
        implementation=step.implementation,
        shapes=f"{_shapes(step.reads)} -> {_shapes(step.writes)}",
        read_bytes=read,
        written_bytes=written,
        live_bytes=live_bytes,
        starts_ns=tuple(start for start, _ in laps),
        ends_ns=tuple(end for _, end in laps),
        is_reorder=step.operator == "Reorder",
    )


def moved_bytes(step: LoweredStep) -> tuple[int, int]:
    """Count the bytes that a step reads and writes, each operand once, in its layout."""
    written = sum(_sizes(step.writes))
    sizes = _sizes(step.reads)
    if sizes and step.operator in PARTIAL_READERS:
        sizes[0] = min(sizes[0], written)
    return sum(sizes), written


def _sizes(operands: tuple[Operand, ...]) -> list[int]:
    return list({(o.space, o.slot, o.name): o.size_bytes for o in operands}.values())


def _shapes(operands: tuple[Operand, ...]) -> str:
    return ", ".join("x".join(map(str, operand.shape)) or "scalar" for operand in operands)


def _segments(executable: Executable) -> tuple[tuple[int, int], ...]:
    """List half-open ranges of lowered steps, one for each call."""
    ranges, first = [], 0
    for segment in executable.segments:
        count = segment.last - segment.first if isinstance(segment, NativeSegment) else 1
        ranges.append((first, first + count))
        first += count
    return tuple(ranges)
