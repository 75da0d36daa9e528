"""Pictures that commands write: a page to look into, or a still one."""

from pathlib import Path

from tightship.errors import InputError
from tightship.planner import Problem
from tightship.planner.format.atomic import write_text
from tightship.planner.problem import Int64Array
from tightship.view.picture import Picture, picture_of_buffers
from tightship.view.svg import svg
from tightship.view.timeline import timeline

DRAWINGS = {".html": timeline, ".svg": svg}
"""By the end of a file's name."""


def check_drawing(path: Path) -> None:
    """Refuse a name that asks for no picture there is.

    Raises:
        InputError: It ends in something else.
    """
    if path.suffix not in DRAWINGS:
        raise InputError(f"A picture is written as .html or .svg, not as `{path.name}`.")


def draw(picture: Picture, path: Path) -> None:
    """Write a picture in the form that the file's name asks for.

    Raises:
        OSError: The file cannot be written; an older one is then untouched.
    """
    write_text(path, DRAWINGS[path.suffix](picture))


def picture_of_placed(
    name: str, problem: Problem, offset_bytes: Int64Array, lower_bound_bytes: int
) -> Picture:
    """Buffers at their offsets."""
    names = problem.names or tuple(map(str, range(problem.count)))
    columns = (problem.start_step, problem.stop_step, problem.size_bytes, offset_bytes)
    rows = zip(names, *(column.tolist() for column in columns), strict=True)
    return picture_of_buffers(name, rows, lower_bound_bytes)
