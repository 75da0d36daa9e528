"""Implements `tightship view`: draws a plan."""

import argparse
import sys
import webbrowser
from pathlib import Path

from tightship.cli.drawing import check_drawing, draw, picture_of_placed
from tightship.cli.output import show
from tightship.loading import plan
from tightship.planner import place
from tightship.planner.format.problem_file import read_problem
from tightship.planner.format.suffixes import holds_buffers
from tightship.view.picture import Picture
from tightship.view.text import printable


def run(options: argparse.Namespace) -> int:
    """Draw the plan of a model, or of the buffers of a file."""
    path = Path(options.output)
    check_drawing(path)
    draw(_picture(options), path)
    show(f"{printable(str(path))}\n")
    if options.open and not webbrowser.open(path.resolve().as_uri()):
        print("tightship: no browser could be opened.", file=sys.stderr)
    return 0


def _picture(options: argparse.Namespace) -> Picture:
    if not holds_buffers(Path(options.file)):
        shapes = dict(options.shape)
        return plan(options.file, shapes=shapes, threads=options.threads,
                    without=options.without).picture()  # fmt: skip
    problem, offsets = read_problem(Path(options.file))
    solved = place(problem)
    placed = solved.offset_bytes if offsets is None else offsets
    return picture_of_placed(Path(options.file).name, problem, placed, solved.lower_bound_bytes)
