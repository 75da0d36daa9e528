"""Implements `tightship plan`: the memory of a model."""

import argparse
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from tightship.cli.argument_types import max_memory
from tightship.cli.output import show, show_json, wants_bold
from tightship.deprecated import current
from tightship.engine.compile.compile_graph import Settings
from tightship.engine.plan.memory_plan import MemoryPlan
from tightship.engine.stored.container import holds_prepared
from tightship.errors import InputError
from tightship.loading import plan as plan_model
from tightship.planner.format.suffixes import holds_buffers

if TYPE_CHECKING:
    from tightship.lengths import OpenLengths


def run(options: argparse.Namespace) -> int:
    """Plan a model; a file of buffers, which `tightship place` is for, warns and is placed."""
    if options.diff is not None:
        from tightship.cli.difference_option import run_difference  # few plans are compared

        return run_difference(options)
    if options.old_shape or options.markdown:
        name = "old-shape" if options.old_shape else "markdown"
        raise InputError(f"`--{name}` is for `--diff OLD NEW`; give it too, or leave this out.")
    if not holds_buffers(Path(options.file)):
        if options.split is not None:
            from tightship.cli.split_option import run_split  # few plans are split

            return run_split(options)
        if options.context or options.sessions:
            from tightship.cli.context_option import run_context  # few plans are of sessions

            return run_context(options, max_memory(options))
        return _plan_model(options)
    from tightship.cli.place_command import run as place

    for given, name in ((options.shape, "shape"), (options.max_memory, "max-memory"),
                        (options.dynamic_memory, "dynamic-memory"),
                        (options.activations, "activations"), (options.precision, "precision"),
                        (options.without, "without"),
                        (options.tune is not None, "tune"), (options.split, "split"),
                        (options.cache, "cache"), (options.workers, "workers"),
                        (options.workers_memory is not None, "workers-memory")):  # fmt: skip
        if given:
            raise InputError(f"`--{name}` is for a model; buffers take `--capacity`.")
    current("command", "tightship plan BUFFERS", FutureWarning)
    return place(options)


def _plan_model(options: argparse.Namespace) -> int:
    # A plan of sessions, which has returned before, does without these.
    from tightship.cli.length_table import opened_for
    from tightship.cli.tune_option import tune

    _check_options(options)
    limit = max_memory(options)
    settings = Settings(dict(options.shape), options.threads or 1, options.without)
    is_prepared = holds_prepared(options.file)
    opened = None if is_prepared else opened_for(options, limit)
    if opened is not None:
        settings = replace(settings, shapes=opened.shapes)
    # The limit of a plan for one worker is checked below, with the batches that would fit.
    most = limit if (options.workers or 1) > 1 and limit is not None else None
    plan = plan_model(options.file, shapes=settings.shapes, threads=options.threads,
                      workers=options.workers, workers_memory=options.workers_memory,
                      without=settings.without, activations=options.activations,
                      precision=options.precision,
                      max_memory=most and max(0, most - (options.dynamic_memory or 0)),
                      tune=tune(options, options.file))  # fmt: skip
    if options.output:
        plan.save(options.output)
    _show(plan, opened, limit, as_json=options.json)
    if limit is not None:
        from tightship.loading.budget import check_budget
        from tightship.loading.opening import check_limit

        if is_prepared:
            check_budget(plan, limit, options.dynamic_memory, None)
        else:
            check_limit(plan, options.file, settings, limit, options.dynamic_memory)
    return 0


def _show(
    plan: MemoryPlan, opened: "OpenLengths | None", limit: int | None, *, as_json: bool
) -> None:
    """Print a plan, and the peaks against the lengths that its file leaves open."""
    from tightship.cli.length_table import json_of, text_of
    from tightship.engine.plan.concurrency_report import concurrency_text
    from tightship.view.report import report

    if as_json:
        lengths = {} if opened is None else {"open_lengths": json_of(opened, limit)}
        show_json({**plan.to_json(), **lengths})
        return
    show(report(plan.picture(), bold=wants_bold()) + concurrency_text(plan.concurrency))
    if opened is not None:
        show("\n" + text_of(opened, limit))


def _check_options(options: argparse.Namespace) -> None:
    from tightship.engine.plan.drawing import check_form

    if options.cache is not None:
        raise InputError(
            "`--cache` is for sessions of a decoder; give `--context`, the tokens of one."
        )
    if options.capacity is not None:
        raise InputError(
            "`--capacity` is for buffers (`tightship place`); a model takes `--max-memory`."
        )
    if options.minimize:
        raise InputError(
            "`--minimize` is for buffers (`tightship place`); a model's arena is always minimised."
        )
    if options.order:
        raise InputError(
            "`--order` is for buffers (`tightship place`); leave it out for a model, which plans "
            "new shapes itself."
        )
    if options.output is not None:
        check_form(Path(options.output))
