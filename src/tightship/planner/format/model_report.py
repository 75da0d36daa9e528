"""Reads the tensors in the output of `tightship plan MODEL --json` as buffers and offsets.

{..., "arena_bytes": ..., "tensors": [
    {"name": ..., "size_bytes": ..., "offset_bytes": ..., "start_step": ..., "stop_step": ...,
     "shares_with": the name of an earlier tensor whose bytes it took over, or null, ...}, ...]}

Tensors that share bytes become one buffer, from the first byte and step of any of them to the last.
"""

import numpy as np

from tightship.errors import FormatError
from tightship.planner.format.json_fields import Fields
from tightship.planner.names import names_of
from tightship.planner.problem import Int64Array, Problem


def is_model_report(fields: Fields) -> bool:
    """Whether an object is such a report rather than a plan file."""
    return "format" not in fields.raw and {"arena_bytes", "tensors"} <= fields.raw.keys()


def read_model_report(fields: Fields) -> tuple[Problem, Int64Array]:
    """Read one buffer for all tensors that share, named after the first of them, and its offset.

    Returns:
        The problem, with alignments of 1 because a report states none, and offsets of shape (n,).

    Raises:
        FormatError: A field is missing or of another type, a `stop_step` lies before its
            `start_step`, or `arena_bytes` is not the end of the last tensor.
    """
    bounds: dict[str, list[int]] = {}
    root: dict[str, str] = {}
    for tensor in fields.objects("tensors"):
        name, size = tensor.text("name"), tensor.integer("size_bytes")
        offset = tensor.integer("offset_bytes")
        start, stop = tensor.integer("start_step"), tensor.integer("stop_step")
        if stop < start:
            tensor.refuse("stop_step", f"at least `start_step`, {start}")
        host = tensor.raw.get("shares_with")
        root[name] = root.get(host, name) if isinstance(host, str) else name
        found = bounds.setdefault(root[name], [offset, offset + size, start, stop])
        lowest, first = min(found[0], offset), min(found[2], start)
        found[:] = lowest, max(found[1], offset + size), first, max(found[3], stop)
    columns = np.array(list(bounds.values()), np.int64).reshape(-1, 4).T
    offsets, tops, starts, stops = (np.ascontiguousarray(column) for column in columns)
    peak, stated = int(tops.max(initial=0)), fields.integer("arena_bytes")
    if peak != stated:
        raise FormatError(f"{fields.where} states arena_bytes={stated}; its tensors end at {peak}.")
    alignment = np.ones_like(tops)
    return Problem(tops - offsets, starts, stops, alignment, names_of(bounds)), offsets
