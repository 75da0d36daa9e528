"""Implements `tightship resource profile`: recommends a division of memory for a trace."""

import argparse
from pathlib import Path

from tightship.cli.output import show, show_json
from tightship.cli.trace_file import read_any_trace
from tightship.quantity import format_bytes
from tightship.trace.replay import Outcome
from tightship.trace.workload import Division, compare, recommend
from tightship.view.table import Column, table

DONE, REFUSED = 0, 1


def run(options: argparse.Namespace) -> int:
    """Recommend a division; print its replay, and the settings that select it."""
    path = Path(options.file)
    trace = read_any_trace(path)
    division = recommend(trace, options.size)
    outcomes = compare(trace, division)
    if options.json:
        show_json(_facts(path.name, division, outcomes))
    else:
        show(_text(path.name, division, outcomes))
    return REFUSED if outcomes["recommended"].refused_count else DONE


def _facts(name: str, division: Division, outcomes: dict[str, Outcome]) -> dict[str, object]:
    return {
        "trace": name,
        "region_bytes": division.region_bytes,
        "slabs": [
            {
                "block_bytes": each.block_bytes,
                "share": share,
                "peak_count": each.peak_count,
                "request_count": each.request_count,
            }
            for each, (_, share) in zip(division.classes, division.slabs, strict=True)
        ],
        "rest_share": division.rest_share,
        "rest_touched_bytes": division.rest_touched_bytes,
        "environment": division.environment,
        "outcomes": {
            what: {
                "peak_live_bytes": outcome.peak_live_bytes,
                "peak_held_bytes": outcome.peak_held_bytes,
                "held_ratio": outcome.held_ratio,
                "ns_per_operation": outcome.ns_per_operation,
                "refused_count": outcome.refused_count,
            }
            for what, outcome in outcomes.items()
        },
    }


def _text(name: str, division: Division, outcomes: dict[str, Outcome]) -> str:
    live = outcomes["recommended"].peak_live_bytes
    lines = [f"{name}: at most {format_bytes(live)} live", "", *_parts(division), ""]
    lines += _outcomes(outcomes)
    lines += ["", "In the environment, for `main_memory()`:"]
    lines += [f"  {variable}={value}" for variable, value in division.environment.items()]
    slabs = ", ".join(f"({block_bytes}, {share:.6g})" for block_bytes, share in division.slabs)
    ending = "," if len(division.slabs) == 1 else ""
    lines += [
        "or as an argument:",
        f"  CompositeResource(upstream, {division.region_bytes}, slabs=({slabs}{ending}))",
    ]
    return "\n".join(lines) + "\n"


def _parts(division: Division) -> list[str]:
    rows = [
        (
            f"slab of {each.block_bytes}",
            f"{share:.3%}",
            format_bytes(int(share * division.region_bytes)),
            format_bytes(each.peak_count * each.block_bytes),
            f"{each.request_count:,}",
        )
        for each, (_, share) in zip(division.classes, division.slabs, strict=True)
    ]
    rest_bytes = format_bytes(int(division.rest_share * division.region_bytes))
    taken = format_bytes(division.rest_touched_bytes)
    rows.append(("bump, free list", f"{division.rest_share:.3%}", rest_bytes, taken, ""))
    titles = ("share", "size", "used at most", "requests")
    return table([Column("part"), *(Column(title, number=True) for title in titles)], rows)


def _outcomes(outcomes: dict[str, Outcome]) -> list[str]:
    rows = [
        (
            what,
            format_bytes(outcome.peak_held_bytes),
            f"{outcome.held_ratio:.3f}x",
            f"{outcome.ns_per_operation:.0f}",
            f"{outcome.refused_count:,}",
        )
        for what, outcome in outcomes.items()
    ]
    titles = ("peak held", "of live", "ns/operation", "refused")
    return table([Column("division"), *(Column(title, number=True) for title in titles)], rows)
