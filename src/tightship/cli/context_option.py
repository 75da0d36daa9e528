"""Implements `--context` and `--sessions` of `tightship plan`: memory of a decoder's sessions."""

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from tightship.cli.output import show, show_json
from tightship.engine.compile.compile_graph import Settings
from tightship.engine.stored.container import holds_prepared
from tightship.errors import InputError
from tightship.loading.activations import chosen_passes
from tightship.loading.planned_session import SessionPlan
from tightship.loading.session_plan import SessionPlanner, session_planner
from tightship.quantity import format_bytes
from tightship.view.table import Column, table
from tightship.view.text import printable

if TYPE_CHECKING:
    from tightship.cli.context_drawing import Planner

SESSIONS = (1, 2, 4, 8)
"""Numbers of sessions that the largest contexts are told for, unless others are given."""


def run_context(options: argparse.Namespace, limit: int | None) -> int:
    """Print the memory of sessions; return 1 if none of them fits the limit.

    Raises:
        GraphError: The model cannot be planned for a whole context.
        InputError: An option is given that does not go with a context.
        OSError: The picture cannot be written.
    """
    for given, name in ((options.dynamic_memory, "dynamic-memory"),
                        (options.tune is not None, "tune"), (options.capacity, "capacity"),
                        (options.minimize, "minimize"), (options.order, "order"),
                        (options.workers, "workers"),
                        (options.workers_memory is not None, "workers-memory")):  # fmt: skip
        if given:
            raise InputError(f"`--{name}` does not go with `--context`; leave one of them out.")
    if not options.context and limit is None:
        raise InputError(
            "`--sessions` needs `--context`, the tokens that each may have, or `--max-memory`, for "
            "which the most tokens are found."
        )
    if options.output is not None:
        from tightship.cli.drawing import check_drawing  # few plans are drawn

        check_drawing(Path(options.output))
    planner = _planner(options)
    if isinstance(planner, SessionPlanner):
        for context in options.context or ():
            planner.file.check_trained(context)
    counts = options.sessions or [1]
    plans = [planner.plan(context) for context in options.context or ()]
    largest = {}
    if limit is not None:
        largest = {n: planner.largest_context(limit, n) for n in options.sessions or SESSIONS}
    if options.output is not None:
        from tightship.cli.context_drawing import draw_sessions

        draw_sessions(Path(options.output), planner, plans, counts, limit, largest)
    if options.json:
        show_json(_json(planner, plans, counts, largest))
    else:
        show(_text(planner, plans, counts, largest))
    peaks = [plan.peak_bytes(count) for plan in plans for count in counts]
    fits = limit is None or any(peak <= limit for peak in peaks)
    return 0 if fits or (not peaks and any(largest.values())) else 1


def _planner(options: argparse.Namespace) -> "Planner":
    """Return the planner of a model's file, or of programs that a prepared model has."""
    given = dict(options.shape)
    if holds_prepared(options.file):
        # An ONNX file needs none of these.
        from tightship.loading.restoring import Asked
        from tightship.loading.stored_session_plan import stored_planner

        asked = Asked(None, options.threads, options.without, options.activations)
        return stored_planner(options.file, asked, given, options.cache)
    without = chosen_passes(options.file, options.without, options.activations)
    settings = Settings(None, options.threads or 1, without)
    return session_planner(options.file, given, settings, options.cache)


def _json(
    planner: "Planner", plans: list[SessionPlan], counts: list[int], largest: dict[int, int]
) -> dict[str, object]:
    found: dict[str, object] = {
        "model": planner.name,
        "batch": planner.batch,
        "cache": planner.cache,
        "contexts": [
            {
                "context": plan.context,
                "weights_bytes": plan.weights_bytes,
                "arena_bytes": plan.arena_bytes,
                "io_bytes": plan.io_bytes,
                "runtime_bytes": plan.runtime_bytes,
                "state_bytes_per_token": plan.bytes_per_token,
                "state_bytes": plan.state_bytes,
                "peaks": [
                    {"sessions": count, "peak_bytes": plan.peak_bytes(count)} for count in counts
                ],
            }
            for plan in plans
        ],
    }
    if largest:
        found["largest_contexts"] = [
            {"sessions": count, "context": context} for count, context in largest.items()
        ]
    return found


def _text(
    planner: "Planner", plans: list[SessionPlan], counts: list[int], largest: dict[int, int]
) -> str:
    rows = [
        (
            str(plan.context),
            *(format_bytes(part) for part in (plan.weights_bytes, plan.arena_bytes, plan.io_bytes,
                                              plan.runtime_bytes, plan.state_bytes)),
            *(format_bytes(plan.peak_bytes(count)) for count in counts),
        )
        for plan in plans
    ]  # fmt: skip
    titles = ("context", "weights", "arena", "in and out", "runtime", "state",
              *(f"peak x{count}" for count in counts))  # fmt: skip
    columns = [Column(title, number=True) for title in titles]
    some = plans[0] if plans else planner.plan(max(planner.least_context, *largest.values()))
    lines = [
        f"{printable(planner.name)}: {format_bytes(some.bytes_per_token)} of state for each token "
        f"of a session{f', as {planner.cache}' if planner.cache else ''}",
        *(["", *table(columns, rows, indent=2)] if plans else []),
        *([""] if largest else []),
        *(
            f"largest context of {count} session(s) within the limit: {context or 'none'}"
            for count, context in largest.items()
        ),
    ]
    return "\n".join(lines) + "\n"
