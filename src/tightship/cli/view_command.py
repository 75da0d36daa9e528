"""`tightship view`: a plan as a picture."""

import argparse
import sys
import webbrowser
from pathlib import Path

from tightship.cli.output import show
from tightship.errors import InputError
from tightship.loading import plan
from tightship.planner import solve
from tightship.planner.format.atomic import write_text
from tightship.planner.format.problem_file import holds_buffers, read_problem
from tightship.view.picture import Picture, picture_of_buffers
from tightship.view.svg import svg
from tightship.view.timeline import timeline

DRAWINGS = {".html": timeline, ".svg": svg}


def run(options: argparse.Namespace) -> int:
    """Draw the plan of a model, or of the buffers of a file."""
    path = Path(options.output)
    if path.suffix not in DRAWINGS:
        raise InputError(f"A picture is written as .html or .svg, not as `{path.name}`.")
    write_text(path, DRAWINGS[path.suffix](_picture(options)))
    show(f"{path}\n")
    if options.open and not webbrowser.open(path.resolve().as_uri()):
        print("tightship: no browser could be opened.", file=sys.stderr)
    return 0


def _picture(options: argparse.Namespace) -> Picture:
    if not holds_buffers(Path(options.file)):
        shapes = dict(options.shape)
        return plan(options.file, shapes=shapes, threads=options.threads,
                    without=options.without).picture()  # fmt: skip
    problem, offsets = read_problem(Path(options.file))
    solved = solve(problem)
    placed = solved.offset_bytes if offsets is None else offsets
    names = problem.names or tuple(str(index) for index in range(problem.count))
    columns = (problem.start_step, problem.stop_step, problem.size_bytes, placed)
    rows = zip(names, *(column.tolist() for column in columns), strict=True)
    return picture_of_buffers(Path(options.file).name, rows, solved.lower_bound_bytes)
