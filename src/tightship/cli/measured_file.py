"""Reads what `tightship run --profile` measured, for a page that draws it beside the plan."""

import json
from collections.abc import Sequence
from pathlib import Path
from statistics import median
from typing import Any

from tightship.errors import FormatError, InputError
from tightship.view.page_extras import Measured


def read_measured(path: str, step_count: int) -> Measured:
    """Read the JSON of a run, of a profile, or a trace.

    Args:
        path: File of the measurement.
        step_count: Steps of the plan that it is of.

    Raises:
        FormatError: The file is none of these.
        InputError: It has another number of steps than the plan.
        OSError: It cannot be read.
    """
    try:
        values = json.loads(Path(path).read_text(encoding="utf-8"))
        measured = _measured(values, step_count)
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise FormatError(
            f"`{path}` is not a measurement: {type(error).__name__} {error}; "
            "`tightship run MODEL --profile --json` prints one."
        ) from None
    found = len(measured.step_ns)
    if found and found != step_count:
        raise InputError(
            f"`{path}` has {found} steps and the plan {step_count}: measure the same model with "
            "the same shapes and threads."
        )
    return measured


def _measured(values: dict[str, Any], step_count: int) -> Measured:
    if "traceEvents" in values:
        return Measured(_of_trace(values["traceEvents"], step_count))
    steps = values["profile"]["steps"] if "profile" in values else values.get("steps", ())
    resident, data = values.get("measured_resident_bytes"), values.get("measured_data_bytes")
    if not steps and resident is None:
        raise KeyError("profile")
    return Measured(
        tuple(int(step["median_ns"]) for step in steps),
        None if resident is None else int(resident),
        None if data is None else int(data),
    )


def _of_trace(events: Sequence[dict[str, Any]], step_count: int) -> tuple[int, ...]:
    """Return the median of each step over the runs of a trace, whose steps have arguments."""
    taken = [1000 * float(each["dur"]) for each in events if each["ph"] == "X" and "args" in each]
    if not step_count or not taken or len(taken) % step_count:
        return tuple(map(int, taken))  # of another model, which the caller refuses
    return tuple(int(median(taken[step::step_count])) for step in range(step_count))
