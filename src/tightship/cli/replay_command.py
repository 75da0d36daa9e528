"""Implements `tightship replay`: a recorded trace on several memory resources, side by side."""

import argparse
from collections.abc import Mapping
from functools import partial
from pathlib import Path

from tightship.atomic_file import write_text
from tightship.cli.output import show, show_json
from tightship.cli.trace_file import read_any_trace
from tightship.errors import InputError
from tightship.quantity import format_bytes
from tightship.resource.spec import DEFAULTS, resource_from
from tightship.trace.replay import Outcome, replay
from tightship.view.replay_page import replay_page
from tightship.view.replay_picture import Panel, ReplayPicture, replay_svg

DONE, REFUSED = 0, 1

COLUMNS = ("resource", "peak held", "of live", "fragmentation", "ns/operation", "refused")

DRAWINGS = {".html": replay_page, ".svg": replay_svg}


def run(options: argparse.Namespace) -> int:
    """Replay a trace on each resource; print the bytes held and the time taken."""
    path = Path(options.file)
    target = Path(options.output) if options.output else None
    if target is not None and target.suffix not in DRAWINGS:
        raise InputError(f"Cannot draw a picture as `{target.name}`; choose .html or .svg.")
    trace = read_any_trace(path)
    outcomes = {
        spec: replay(trace, partial(resource_from, spec)) for spec in options.resource or DEFAULTS
    }
    if target is not None:
        write_text(target, DRAWINGS[target.suffix](_picture(path.name, outcomes)))
    if options.json:
        show_json({"trace": path.name, "resources": [_facts(*each) for each in outcomes.items()]})
    else:
        show(_table(path.name, outcomes))
    return REFUSED if any(outcome.refused_count for outcome in outcomes.values()) else DONE


def _picture(title: str, outcomes: Mapping[str, Outcome]) -> ReplayPicture:
    panels = [
        Panel(spec, outcome.live_bytes, outcome.held_bytes,
              outcome.ns_per_operation, outcome.refused_count)
        for spec, outcome in outcomes.items()
    ]  # fmt: skip
    return ReplayPicture(title, _most(outcomes).operation_count, tuple(panels))


def _most(outcomes: Mapping[str, Outcome]) -> Outcome:
    return max(outcomes.values(), key=lambda outcome: outcome.peak_live_bytes)


def _facts(spec: str, outcome: Outcome) -> dict[str, object]:
    return {
        "resource": spec,
        "operation_count": outcome.operation_count,
        "refused_count": outcome.refused_count,
        "peak_live_bytes": outcome.peak_live_bytes,
        "peak_held_bytes": outcome.peak_held_bytes,
        "held_ratio": outcome.held_ratio,
        "fragmentation": outcome.fragmentation,
        "ns_per_operation": outcome.ns_per_operation,
    }


def _table(name: str, outcomes: Mapping[str, Outcome]) -> str:
    rows = [COLUMNS]
    for spec, outcome in outcomes.items():
        rows.append(
            (
                spec,
                format_bytes(outcome.peak_held_bytes),
                f"{outcome.held_ratio:.3f}x",
                f"{outcome.fragmentation:.1%}",
                f"{outcome.ns_per_operation:.0f}",
                f"{outcome.refused_count:,}",
            )
        )
    widths = [max(len(row[column]) for row in rows) for column in range(len(COLUMNS))]
    lines = [
        "  ".join([row[0].ljust(widths[0]), *map(str.rjust, row[1:], widths[1:])]) for row in rows
    ]
    most = _most(outcomes)
    head = f"{name}: {most.operation_count:,} operations, at most "
    return "\n".join([f"{head}{format_bytes(most.peak_live_bytes)} live", *lines]) + "\n"
