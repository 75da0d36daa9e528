"""Implements `--diff` of `tightship plan`: what moved the peak between two plans."""

import argparse
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from tightship.atomic_file import write_text
from tightship.cli.output import show, show_json
from tightship.difference import compare_plans, read_plan
from tightship.errors import InputError
from tightship.loading import plan as plan_model
from tightship.view.page_extras import Extras
from tightship.view.picture import Picture
from tightship.view.timeline import timeline

Shapes = Mapping[str, tuple[int, ...]]

GROWS = 1
"""Exit code of a difference whose new plan takes more."""


def run_difference(options: argparse.Namespace) -> int:
    """Plan two models, or read their plans, and print what differs.

    Returns:
        0 if NEW takes no more than OLD, else 1.

    Raises:
        InputError: An option is given that a difference does not take.
    """
    _check_options(options)
    before, after = options.diff
    old_shapes = {**dict(options.shape), **dict(options.old_shape)}
    if options.old_shape and _is_written(before):
        raise InputError(f"`--old-shape` is for a model; `{before}` is a plan with its own shapes.")
    old = _plan_of(before, old_shapes, options)
    new = _plan_of(after, dict(options.shape), options)
    if old.title == new.title:  # two files or shapes of one model
        old, new = (
            _told_apart(old, before, old_shapes),
            _told_apart(new, after, dict(options.shape)),
        )
    found = compare_plans(old, new)
    if options.output:
        from tightship.cli.overlaid import overlay_of  # few differences are drawn

        extras = Extras(overlay=overlay_of(old, new, old.title))
        write_text(Path(options.output), timeline(new, extras))
    if options.json:
        show_json(found.to_json())
    elif options.markdown:
        show(found.markdown())
    else:
        show(found.table())
    return GROWS if found.change_bytes > 0 else 0


def _check_options(options: argparse.Namespace) -> None:
    if options.file is not None:
        raise InputError(
            f"`--diff OLD NEW` names both models; leave `{options.file}` out, or write it as one "
            "of the two."
        )
    for given, name in ((options.max_memory, "max-memory"),
                        (options.dynamic_memory, "dynamic-memory"), (options.split, "split"),
                        (options.tune is not None, "tune"), (options.context, "context"),
                        (options.sessions, "sessions"), (options.cache, "cache"),
                        (options.capacity, "capacity"), (options.minimize, "minimize"),
                        (options.order, "order"),
                        (options.json and options.markdown, "markdown")):  # fmt: skip
        if given:
            other = "--json" if name == "markdown" else "--diff"
            raise InputError(f"`--{name}` does not go with `{other}`; leave one of them out.")

    if options.output and Path(options.output).suffix != ".html":
        raise InputError(
            f"A difference is drawn as a page; write .html, not `{Path(options.output).name}`."
        )


def _told_apart(plan: Picture, file: str, shapes: Shapes) -> Picture:
    lengths = [f"{name}={'x'.join(map(str, shape))}" for name, shape in shapes.items()]
    return replace(plan, title=" ".join([Path(file).name, *lengths]))


def _plan_of(file: str, shapes: Shapes, options: argparse.Namespace) -> Picture:
    if _is_written(file):
        return read_plan(file)
    return plan_model(
        file,
        shapes=shapes,
        threads=options.threads,
        workers=options.workers,
        workers_memory=options.workers_memory,
        without=options.without,
        activations=options.activations,
    ).picture()


def _is_written(file: str) -> bool:
    return Path(file).suffix == ".json"
