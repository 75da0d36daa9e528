"""`tightship replay`: what memory resources make of a recorded trace, side by side."""

import argparse
from functools import partial
from pathlib import Path

from tightship.cli.output import show, show_json
from tightship.cli.trace_file import read_any_trace
from tightship.quantity import format_bytes
from tightship.replay import Outcome, replay
from tightship.resource.spec import DEFAULTS, resource_from

DONE, REFUSED = 0, 1

COLUMNS = ("resource", "peak held", "of live", "fragmentation", "ns/operation", "refused")


def run(options: argparse.Namespace) -> int:
    """Replay a trace against each resource; print what it held and how long it took."""
    path = Path(options.file)
    trace = read_any_trace(path)
    outcomes = {
        spec: replay(trace, partial(resource_from, spec)) for spec in options.resource or DEFAULTS
    }
    if options.json:
        show_json({"trace": path.name, "resources": [_facts(*each) for each in outcomes.items()]})
    else:
        show(_table(path.name, outcomes))
    return REFUSED if any(outcome.refused_count for outcome in outcomes.values()) else DONE


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


def _table(name: str, outcomes: dict[str, Outcome]) -> str:
    rows = [COLUMNS]
    rows += [
        (
            spec,
            format_bytes(outcome.peak_held_bytes),
            f"{outcome.held_ratio:.3f}x",
            f"{outcome.fragmentation:.1%}",
            f"{outcome.ns_per_operation:.0f}",
            f"{outcome.refused_count:,}",
        )
        for spec, outcome in outcomes.items()
    ]
    widths = [max(len(row[column]) for row in rows) for column in range(len(COLUMNS))]
    lines = [
        "  ".join([row[0].ljust(widths[0]), *map(str.rjust, row[1:], widths[1:])]) for row in rows
    ]
    most = max(outcomes.values(), key=lambda outcome: outcome.peak_live_bytes)
    head = f"{name}: {most.operation_count:,} operations, at most "
    return "\n".join([f"{head}{format_bytes(most.peak_live_bytes)} live", *lines]) + "\n"
