"""Writes pictures of plans: an interactive page or a still picture."""

from collections.abc import Callable, Mapping
from pathlib import Path

from tightship.atomic_file import write_text
from tightship.errors import InputError
from tightship.planner import Problem
from tightship.planner.problem import Int64Array
from tightship.view.picture import Picture, picture_of_buffers
from tightship.view.svg import svg
from tightship.view.timeline import timeline

DRAWINGS: Mapping[str, Callable[[Picture], str]] = {".html": timeline, ".svg": svg}
"""Drawing functions by the suffix of a file."""


def check_drawing(path: Path) -> None:
    """Raise an error if no picture can be written under a name.

    Raises:
        InputError: The suffix is neither .html nor .svg.
    """
    if path.suffix not in DRAWINGS:
        raise InputError(f"Cannot draw a picture as `{path.name}`; choose .html or .svg.")


def draw(picture: Picture, path: Path) -> None:
    """Write a picture in the form that the suffix of the file names.

    Raises:
        OSError: The file cannot be written; an older file is then untouched.
    """
    write_text(path, DRAWINGS[path.suffix](picture))


def picture_of_placed(
    name: str, problem: Problem, offset_bytes: Int64Array, lower_bound_bytes: int
) -> Picture:
    """Make the picture of buffers at their offsets."""
    names = problem.names or tuple(map(str, range(problem.count)))
    columns = (problem.start_step, problem.stop_step, problem.size_bytes, offset_bytes)
    rows = zip(names, *(column.tolist() for column in columns), strict=True)
    return picture_of_buffers(name, rows, lower_bound_bytes)
