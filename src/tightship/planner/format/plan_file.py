"""The plan file: a problem and its plan in JSON, checked to the last field when read.

{"format": "tightship-plan", "version": 1, "strategy": ..., "status": ...,
 "peak_bytes": ..., "lower_bound_bytes": ..., "capacity_bytes": ... or null,
 "buffers": [{"name": ... or null, "size_bytes": ..., "alignment": ...,
              "start_step": ..., "stop_step": ..., "offset_bytes": ...}, ...]}
"""

import json
from pathlib import Path
from typing import NoReturn, cast, get_args

import numpy as np

from tightship.errors import FormatError, PlanError
from tightship.planner.format.atomic import write_text
from tightship.planner.plan import Plan, PlanStatus
from tightship.planner.problem import Int64Array, Problem
from tightship.planner.verify import verify

FORMAT = "tightship-plan"
VERSION = 1

PLAN_KEYS = (
    "format",
    "version",
    "strategy",
    "status",
    "peak_bytes",
    "lower_bound_bytes",
    "capacity_bytes",
    "buffers",
)
COLUMN_KEYS = ("size_bytes", "alignment", "start_step", "stop_step", "offset_bytes")
INT64_MAX = 2**63 - 1


def write_plan(path: Path, plan: Plan) -> None:
    """Write a plan so that `read_plan` returns the same.

    Raises:
        OSError: The file cannot be written; an older one is then untouched.
    """
    problem = plan.problem
    columns = (
        problem.names or (None,) * problem.count,
        problem.size_bytes.tolist(),
        problem.alignment.tolist(),
        problem.start_step.tolist(),
        problem.stop_step.tolist(),
        plan.offset_bytes.tolist(),
    )
    rows = zip(*columns, strict=True)
    head = {
        "format": FORMAT,
        "version": VERSION,
        "strategy": plan.strategy,
        "status": plan.status,
        "peak_bytes": plan.peak_bytes,
        "lower_bound_bytes": plan.lower_bound_bytes,
        "capacity_bytes": problem.capacity_bytes,
    }
    buffers = [
        json.dumps(dict(zip(("name", *COLUMN_KEYS), row, strict=True)), ensure_ascii=False)
        for row in rows
    ]
    opening = json.dumps(head, ensure_ascii=False, indent=1).removesuffix("\n}")
    body = ",\n  ".join(buffers)
    write_text(path, f'{opening},\n "buffers": [\n  {body}\n ]\n}}\n')


def read_plan(path: Path) -> Plan:
    """Read a plan and verify it.

    Raises:
        FormatError: Not JSON, another format or version, a key missing, unknown or there twice,
            or a value of another type or out of range. The field is named.
        InvalidPlanError: The file is well formed, but its plan would corrupt memory or does not
            have the numbers it states.
        OSError: The file cannot be read.
    """
    fields = _Fields(f"`{path}`", _load(path))
    if fields.raw.get("format") != FORMAT:
        raise FormatError(f"`{path}` is not a plan file: `format` must be `{FORMAT}`.")
    version = fields.integer("version")
    if version != VERSION:
        raise FormatError(f"`{path}` has version {version}; this reader knows version {VERSION}.")
    fields.check_keys(PLAN_KEYS)
    buffers = [
        _Fields(f"`{path}`, `buffers[{index}]`", raw)
        for index, raw in enumerate(fields.items("buffers"))
    ]
    for buffer in buffers:
        buffer.check_keys(("name", *COLUMN_KEYS))
    names = [buffer.optional_text("name") for buffer in buffers]
    named = tuple(name for name in names if name is not None)
    if 0 < len(named) < len(names):
        raise FormatError(f"`{path}` names {len(named)} of {len(names)} buffers; all or none.")
    columns = {key: _column(buffers, key) for key in COLUMN_KEYS}
    offset_bytes = columns.pop("offset_bytes")
    capacity = None if fields.raw["capacity_bytes"] is None else fields.integer("capacity_bytes")
    try:
        problem = Problem(
            columns["size_bytes"],
            columns["start_step"],
            columns["stop_step"],
            columns["alignment"],
            named or None,
            capacity,
        )
    except PlanError as error:
        raise FormatError(f"`{path}`: {error}") from error
    bound = fields.integer("lower_bound_bytes")
    plan = Plan(problem, offset_bytes, fields.text("strategy"), bound, _status(fields))
    if plan.peak_bytes != fields.integer("peak_bytes"):
        raise FormatError(
            f"`{path}` states peak_bytes={fields.integer('peak_bytes')}; its offsets end at "
            f"{plan.peak_bytes}."
        )
    verify(plan)
    return plan


class _Fields:
    """One JSON object, and where it is."""

    def __init__(self, where: str, raw: object) -> None:
        if not isinstance(raw, dict):
            raise FormatError(f"{where} is not a JSON object.")
        self.where = where
        self.raw: dict[str, object] = raw

    def check_keys(self, keys: tuple[str, ...]) -> None:
        """Refuse an object with other keys than these."""
        for key in keys:
            if key not in self.raw:
                raise FormatError(f"{self.where} has no `{key}`.")
        for key in self.raw:
            if key not in keys:
                raise FormatError(f"{self.where} has an unknown field `{key}`.")

    def integer(self, key: str) -> int:
        """A non-negative int64."""
        value = self.raw.get(key)
        if type(value) is not int or not 0 <= value <= INT64_MAX:
            self._refuse(key, f"an integer in [0, {INT64_MAX}]")
        return value

    def text(self, key: str) -> str:
        """A string."""
        value = self.raw.get(key)
        if not isinstance(value, str):
            self._refuse(key, "a string")
        return value

    def optional_text(self, key: str) -> str | None:
        """A string or null."""
        return None if self.raw[key] is None else self.text(key)

    def items(self, key: str) -> list[object]:
        """An array."""
        value = self.raw.get(key)
        if not isinstance(value, list):
            self._refuse(key, "an array")
        return value

    def _refuse(self, key: str, needed: str) -> NoReturn:
        raise FormatError(
            f"{self.where}: `{key}` is {json.dumps(self.raw.get(key))[:40]}; it must be {needed}."
        )


def _load(path: Path) -> object:
    try:
        return json.loads(
            path.read_bytes().decode("utf-8"),
            object_pairs_hook=_unique_keys,
            parse_constant=_refuse_constant,
        )
    except (ValueError, RecursionError) as error:
        raise FormatError(f"`{path}` is not a plan file in JSON: {error}.") from error


def _unique_keys(pairs: list[tuple[str, object]]) -> dict[str, object]:
    unique = dict(pairs)
    if len(unique) != len(pairs):
        repeated = next(key for i, (key, _) in enumerate(pairs) if key in dict(pairs[:i]))
        raise FormatError(f"field `{repeated}` is there twice")
    return unique


def _refuse_constant(name: str) -> NoReturn:
    raise FormatError(f"`{name}` is not JSON")


def _column(buffers: list[_Fields], key: str) -> Int64Array:
    return np.array([buffer.integer(key) for buffer in buffers], np.int64)


def _status(fields: _Fields) -> PlanStatus:
    status = fields.text("status")
    if status not in get_args(PlanStatus):
        raise FormatError(
            f"{fields.where}: `status` is {json.dumps(status)[:40]}; it must be one of "
            f"{', '.join(get_args(PlanStatus))}."
        )
    return cast("PlanStatus", status)
