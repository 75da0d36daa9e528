"""Reports what a plan for several workers was chosen from, and what it costs."""

from dataclasses import asdict

from tightship.planner.parallel.concurrency import Concurrency
from tightship.quantity import format_bytes
from tightship.view.table import Column, table

MOST = 0.9
"""Share of what all workers could do by operations, below which threads are named."""


def concurrency_text(concurrency: Concurrency | None) -> str:
    """Tabulate the plans, and say which was chosen; empty for a plan for one worker."""
    if concurrency is None:
        return ""
    columns = [
        Column(f"steps on {concurrency.workers} workers"),
        *(
            Column(title, number=True)
            for title in ("arena", "added waits", "longest chain", "speed")
        ),
    ]
    rows = [
        [
            f"{choice.name}{', chosen' * (index == concurrency.chosen)}",
            format_bytes(choice.arena_bytes),
            f"{choice.added_edges:,}",
            f"{choice.longest_chain:,}",
            f"{concurrency.speedup_of(choice):.2f}",
        ]
        for index, choice in enumerate(concurrency.choices)
    ]
    lines = ["", *table(columns, rows, indent=2), "", *_verdict(concurrency)]
    return "\n".join(lines) + "\n"


def _verdict(concurrency: Concurrency) -> list[str]:
    added, bound = concurrency.added_bytes, concurrency.bound_bytes
    if added:
        price = f"{format_bytes(added)} more than for one worker"
    else:
        price = "as many bytes as for one worker"
    lines = [f"chosen: {concurrency.plan.name}, {price}"]
    passed = [
        each for each in concurrency.choices if bound is not None and each.arena_bytes > bound
    ]
    if bound is not None and passed:
        lines.append(f"passed over: {passed[-1].name}, above the bound of {format_bytes(bound)}")
    speed = concurrency.speedup_of(concurrency.plan)
    lines.append("speed is an estimate by operations, over one worker")
    if speed < MOST * concurrency.workers:
        lines.append(
            f"`--threads {concurrency.workers}` splits each step instead and may be faster: "
            "measure both"
        )
    return lines


def concurrency_json(concurrency: Concurrency) -> dict[str, object]:
    """Return the plans, the index of the chosen one and its waits as JSON values."""
    return {
        "workers": concurrency.workers,
        "plans": [
            {**asdict(choice), "speed": round(concurrency.speedup_of(choice), 4)}
            for choice in concurrency.choices
        ],
        "chosen": concurrency.chosen,
        "added_bytes": concurrency.added_bytes,
        "bound_bytes": concurrency.bound_bytes,
        "edges": [list(edge) for edge in concurrency.edges],
    }
