"""Reads problems with reuse penalties in the JSON schema `dsa_rp_v1`, restricted to one pool.

{"schema_version": 1, "profile": "dsa_rp_v1", "problem": {
  "pools": [{"id", "name", "capacity", "reserved_ranges": []}],
  "buffers": [{"id", "name", "size", "alignment", "allowed_pools",
               "live_intervals": [{"lower", "upper"}]}, ...],
  "constraints": {...: []}, "objective": ...,
  "cost_model": {"reuse_penalties": [{"first", "second", "cost", "reason"}, ...]}}}
"""

import gzip
import json
from pathlib import Path

import numpy as np

from tightship.errors import FormatError, PlanError
from tightship.planner.format.json_fields import Fields
from tightship.planner.penalties import ReusePenalties
from tightship.planner.problem import Problem


def read_reuse_problem(path: Path) -> tuple[Problem, ReusePenalties]:
    """Read a problem and its penalties; a name that ends in `.gz` marks a compressed file.

    Raises:
        FormatError: The file has another schema, several pools, reserved ranges, a lifetime of
            several intervals or other constraints. The message names the field.
        OSError: The file cannot be read.
    """
    try:
        content = path.read_bytes()
        root = json.loads(gzip.decompress(content) if path.suffix == ".gz" else content)
    except (ValueError, EOFError, gzip.BadGzipFile) as error:
        raise FormatError(f"`{path}` is not JSON: {error}.") from error
    head = Fields(f"`{path}`", root)
    if head.raw.get("profile") != "dsa_rp_v1":
        raise FormatError(
            f"`{path}` is not a problem with penalties: `profile` must be `dsa_rp_v1`."
        )
    problem = Fields(f"`{path}`, `problem`", head.raw.get("problem"))
    pools = problem.objects("pools")
    if len(pools) != 1 or pools[0].items("reserved_ranges"):
        raise FormatError(
            f"{problem.where}: `pools` has {len(pools)} pools; it must be one without reserved "
            "ranges."
        )
    constraints = Fields(f"{problem.where}, `constraints`", problem.raw.get("constraints"))
    for key in constraints.raw:
        if constraints.items(key):
            constraints.refuse(key, "empty")
    buffers = problem.objects("buffers")
    row_of = {buffer.integer("id"): row for row, buffer in enumerate(buffers)}
    if len(row_of) != len(buffers):
        raise FormatError(f"{problem.where}: an `id` occurs twice.")
    try:
        made = _problem(buffers, pools[0].integer("capacity"))
        return made, ReusePenalties(_penalties(problem, row_of))
    except PlanError as error:
        raise FormatError(f"`{path}`: {error}") from error


def _problem(buffers: list[Fields], capacity_bytes: int) -> Problem:
    rows = []
    for buffer in buffers:
        intervals = buffer.objects("live_intervals")
        if len(intervals) != 1:
            buffer.refuse("live_intervals", "one interval")
        steps = (intervals[0].integer("lower"), intervals[0].integer("upper"))
        rows.append((buffer.integer("size"), *steps, buffer.integer("alignment")))
    columns = np.array(rows, np.int64).reshape(-1, 4).T
    names = tuple(buffer.text("name") for buffer in buffers)
    return Problem(columns[0], columns[1], columns[2], columns[3], names, capacity_bytes)


def _penalties(
    problem: Fields, row_of: dict[int, int]
) -> np.ndarray[tuple[int, int], np.dtype[np.int64]]:
    model = Fields(f"{problem.where}, `cost_model`", problem.raw.get("cost_model"))
    rows = []
    for pair in model.objects("reuse_penalties"):
        ends = [pair.integer(key) for key in ("first", "second")]
        for key, end in zip(("first", "second"), ends, strict=True):
            if end not in row_of:
                pair.refuse(key, "the `id` of a buffer")
        rows.append((row_of[ends[0]], row_of[ends[1]], pair.integer("cost")))
    return np.array(rows, np.int64).reshape(-1, 3)
