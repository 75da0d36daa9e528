"""Implements `tightship view`: draws a plan, alone or with what it is compared with."""

import argparse
import sys
import webbrowser
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from tightship.atomic_file import write_text
from tightship.cli.drawing import draw, picture_of_placed
from tightship.cli.graph_drawing import check_graph, draw_graph, graph_json
from tightship.cli.length_table import opened_for
from tightship.cli.measured_file import read_measured
from tightship.cli.output import show, show_json
from tightship.cli.overlaid import overlay_of
from tightship.difference import read_plan
from tightship.engine.stored.container import holds_prepared
from tightship.errors import FormatError, InputError, TightshipError
from tightship.lengths import OpenLengths
from tightship.loading import plan
from tightship.planner import place
from tightship.planner.format.problem_file import read_problem
from tightship.planner.format.suffixes import holds_buffers
from tightship.view.page_extras import NOTHING, Extras
from tightship.view.picture import Picture
from tightship.view.report import to_json
from tightship.view.text import printable
from tightship.view.timeline import timeline

_FACTORS = (1, 2, 4, 8)
"""Multiples of an open length that a page has plans for."""
_MANY_STEPS = 300
"""Steps from which a plan takes so long that only the lengths of the option are planned."""

Shapes = Mapping[str, tuple[int, ...]]


def run(options: argparse.Namespace) -> int:
    """Draw the plan of a model, or of the buffers of a file."""
    path = _path(options)
    check_graph(path, options.step, is_graph=options.graph)
    _check_options(options, path)
    opened = _opened(options)
    shapes = dict(options.shape) if opened is None else opened.shapes
    picture = _picture(options.file, shapes, options)
    if path is not None:
        _draw(options, opened, picture, path)
    if options.json:
        show_json(graph_json(picture, options.step) if options.graph else to_json(picture))
    elif path is not None:
        show(f"{printable(str(path))}\n")
    if options.open and path is not None and not webbrowser.open(path.resolve().as_uri()):
        print("tightship: no browser could be opened.", file=sys.stderr)
    return 0


def _path(options: argparse.Namespace) -> Path | None:
    """Return where to draw; None if JSON alone is asked for."""
    if options.output is not None:
        return Path(options.output)
    if options.json and not options.open:
        return None
    return Path("graph.html" if options.graph else "plan.html")


def _draw(
    options: argparse.Namespace, opened: OpenLengths | None, picture: Picture, path: Path
) -> None:
    if options.graph:
        draw_graph(picture, path, options.step)
        return
    extras = _extras(options, opened, picture) if path.suffix == ".html" else NOTHING
    if extras is NOTHING:
        draw(picture, path)
    else:
        write_text(path, timeline(picture, extras))


def _check_options(options: argparse.Namespace, path: Path | None) -> None:
    for given, name in (
        (options.diff, "diff"),
        (options.length, "length"),
        (options.measured, "measured"),
    ):
        if given and options.graph:
            raise InputError(f"`--{name}` does not go with `--graph`; leave one of them out.")
        if given and (path is None or path.suffix != ".html"):
            where = "JSON" if path is None else f"`{path.name}`"
            raise InputError(f"`--{name}` is for a page; write it as .html, not {where}.")
    if options.old_shape and options.diff is None:
        raise InputError("`--old-shape` is for `--diff OLD`; give it too, or leave this out.")
    if options.diff is not None and options.length is not None:
        raise InputError("`--length` does not go with `--diff`; leave one of them out.")


def _opened(options: argparse.Namespace) -> OpenLengths | None:
    """Open a model whose file leaves lengths open; None for another, and for buffers.

    Raises:
        InputError: Lengths are given, and the file leaves none open by a name.
    """
    found = None
    if not holds_buffers(Path(options.file)) and not holds_prepared(options.file):
        options.activations, options.tune = None, None
        found = opened_for(options, None)
    if found is None and options.length and options.length[1]:
        raise InputError(
            f"`--length {options.length[0]}=...` is for a model whose file leaves that length "
            "open; leave it out."
        )
    return found


def _extras(options: argparse.Namespace, opened: OpenLengths | None, picture: Picture) -> Extras:
    extras = NOTHING
    if options.diff is not None:
        old = _picture(options.diff, {**dict(options.shape), **dict(options.old_shape)}, options)
        extras = replace(extras, overlay=overlay_of(old, picture, options.diff))
    elif opened is not None:
        name, lengths = _lengths(options, opened, picture)
        if len(lengths) > 1:
            extras = replace(extras, length_name=name, lengths=lengths)
    if options.measured is not None:
        measured = read_measured(options.measured, len(picture.steps))
        extras = replace(extras, measured=measured)
    return extras


def _lengths(
    options: argparse.Namespace, opened: OpenLengths, picture: Picture
) -> tuple[str, list[tuple[int, Picture]]]:
    """Plan the model for further lengths of one dimension; the page's own plan is among them."""
    name, wanted = options.length or (next(iter(opened.lengths)), None)
    if wanted is None and len(picture.steps) >= _MANY_STEPS:
        return name, []
    opened.shapes_at(name, 1)  # names the open lengths if this is none
    own = opened.lengths[name]
    given = wanted if wanted is not None else [max(1, own) * factor for factor in _FACTORS]
    found = [(own, picture)]
    for length in given:
        if length == own:
            continue
        try:
            shapes = opened.shapes_at(name, length)
            found.append((length, _picture(options.file, shapes, options)))
        except TightshipError:
            if wanted is not None:
                raise
            break  # the model cannot be run with more
    return name, sorted(found, key=lambda each: each[0])


def _picture(file: str, shapes: Shapes, options: argparse.Namespace) -> Picture:
    path = Path(file)
    if path.suffix == ".json":
        try:
            return read_plan(file)
        except FormatError:
            pass  # a plan or trace of buffers
    if not holds_buffers(path):
        return plan(file, shapes=shapes, threads=options.threads, workers=options.workers,
                    workers_memory=options.workers_memory,
                    without=options.without).picture()  # fmt: skip
    problem, offsets = read_problem(path)
    solved = place(problem)
    placed = solved.offset_bytes if offsets is None else offsets
    return picture_of_placed(path.name, problem, placed, solved.lower_bound_bytes)
