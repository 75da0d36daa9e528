"""Reads any file of buffers: a problem, and offsets if the file has them."""

from dataclasses import replace
from pathlib import Path

from tightship.errors import InputError
from tightship.planner.format.allocation_trace import read_trace_problem
from tightship.planner.format.c_header import write_c_header
from tightship.planner.format.minimalloc_csv import read_csv, write_csv
from tightship.planner.format.model_report import is_model_report, read_model_report
from tightship.planner.format.plan_file import plan_of, write_plan
from tightship.planner.format.plan_rows import load_plan
from tightship.planner.format.tflite import UNPLANNED, read_tflite, write_tflite
from tightship.planner.plan import Plan
from tightship.planner.problem import Int64Array, Problem


def read_problem(
    path: Path, *, capacity_bytes: int | None = None
) -> tuple[Problem, Int64Array | None]:
    """Read a CSV, plan, model report, allocation trace or TensorFlow Lite model.

    Offsets are returned without a check, except that a plan in JSON is verified.

    Args:
        path: The file; its suffix and, for JSON, its content decide how it is read.
        capacity_bytes: Capacity of the problem; None keeps the capacity of a plan in JSON, and sets
            no limit for other files.

    Returns:
        The problem, and offsets in bytes of shape (n,) or None.

    Raises:
        FormatError: The file is damaged or of another kind; the message names the position.
        InvalidPlanError: A plan in JSON would corrupt memory.
        OSError: The file cannot be read.
    """
    if path.suffix == ".csv":
        return read_csv(path, capacity_bytes=capacity_bytes)
    if path.suffix == ".tflite":
        tensors = read_tflite(path, capacity_bytes=capacity_bytes)
        return tensors.problem, tensors.offset_bytes
    # The pair form of a trace is an array; plans and model reports are objects.
    if path.suffix == ".jsonl" or path.read_bytes().lstrip()[:1] == b"[":
        return read_trace_problem(path, capacity_bytes=capacity_bytes), None
    fields, rows = load_plan(path)
    if is_model_report(fields):
        problem, offsets = read_model_report(fields)
        return replace(problem, capacity_bytes=capacity_bytes), offsets
    plan = plan_of(path, fields, rows)
    if capacity_bytes is None:
        return plan.problem, plan.offset_bytes
    return replace(plan.problem, capacity_bytes=capacity_bytes), plan.offset_bytes


def read_offsets(path: Path, *, capacity_bytes: int | None = None) -> tuple[Problem, Int64Array]:
    """Read a file that must hold an offset for every buffer.

    Args:
        path: The file.
        capacity_bytes: As for `read_problem`.

    Returns:
        The problem, and offsets in bytes of shape (n,).

    Raises:
        InputError: The file has no offsets, or lacks that of a buffer.
        FormatError, InvalidPlanError, OSError: As `read_problem`.
    """
    problem, offsets = read_problem(path, capacity_bytes=capacity_bytes)
    if offsets is None:
        raise InputError(f"`{path}` holds buffers without offsets; a plan has them.")
    if path.suffix == ".tflite" and (offsets == UNPLANNED).any():
        index = int((offsets == UNPLANNED).argmax())
        raise InputError(
            f"`{path}` leaves tensor {problem.label(index)} to the interpreter, so its offset is "
            "unknown."
        )
    return problem, offsets


def check_placed(path: Path, source: Path) -> None:
    """Raise an error if a plan of buffers cannot be written under a name.

    Args:
        path: The name.
        source: The file that the problem came from.

    Raises:
        InputError: The name ends neither in .csv, .json or .h, nor in .tflite as the source does.
    """
    if path.suffix not in (".csv", ".json", ".h") and not path.suffix == source.suffix == ".tflite":
        raise InputError(
            f"Cannot write a plan of buffers as `{path.name}`; choose .csv, .json, .h, .html or "
            ".svg, or .tflite for a model of that form."
        )


def write_placed(path: Path, plan: Plan, source: Path, command: str = "") -> None:
    """Write a plan in the form that the suffix of `path` names.

    Args:
        path: Ends in .csv, in .json, in .h, or in .tflite if the source does.
        plan: The plan.
        source: The file that the problem came from.
        command: The command that made the plan, for a comment in a header of C.

    Raises:
        InputError: As `check_placed`.
        OSError: The file cannot be written; an older file is then untouched.
    """
    check_placed(path, source)
    if path.suffix == ".csv":
        write_csv(path, plan.problem, plan.offset_bytes)
    elif path.suffix == ".json":
        write_plan(path, plan)
    elif path.suffix == ".h":
        write_c_header(path, plan, command)
    else:
        write_tflite(path, source, read_tflite(source), plan.offset_bytes)
