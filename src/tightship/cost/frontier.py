"""Finds what each budget of memory costs in operations, and tells it."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from tightship.cost.squeeze import GraphSqueezing, SqueezedGraph
from tightship.quantity import format_bytes
from tightship.view.frontier_svg import FrontierPicture, FrontierPoint
from tightship.view.table import Column, table

POINTS = 20
"""Number of budgets between the largest and the smallest plan."""

NAMED = 6
"""Most operators that a point names."""


@dataclass(frozen=True, slots=True)
class Frontier:
    """Plans of a graph by decreasing peak and increasing operations.

    Attributes:
        pass_name: What was planned: `training` or `inference`.
        points: The plans; at least the one without recomputation.
        chosen: The plan for the budget that was asked for, which is one of them if it fits; None
            without a budget.
    """

    pass_name: str
    points: tuple[SqueezedGraph, ...]
    chosen: SqueezedGraph | None


def frontier_of(squeezing: GraphSqueezing, pass_name: str, budget: str = "") -> Frontier:
    """Find the frontier of a graph: no plan of it is beaten in both bytes and operations.

    Args:
        squeezing: The graph.
        pass_name: As for `Frontier`.
        budget: As for `squeezed`; empty, the default, for none.
    """
    most, least = squeezing.whole.plain.plan.plan.peak_bytes, squeezing.within()
    ratio = least.squeezed.plan.plan.peak_bytes / max(most, 1)
    budgets = [int(most * ratio ** (place / POINTS)) for place in range(POINTS)]
    chosen = squeezing.within(budget) if budget else None
    found = [squeezing.within_bytes(each) for each in budgets]
    asked = [] if chosen is None else [chosen]
    return Frontier(pass_name, _undominated([*asked, *found, least]), chosen)


def _undominated(found: Sequence[SqueezedGraph]) -> tuple[SqueezedGraph, ...]:
    """Return plans by decreasing peak, without those that others beat in both respects."""
    kept: list[SqueezedGraph] = []
    for each in sorted(found, key=lambda one: (one.squeezed.added_operations, _peak(one))):
        if not kept or _peak(each) < _peak(kept[-1]):
            kept.append(each)
    return tuple(kept)


def frontier_report(frontier: Frontier) -> str:
    """Format the plans as a table, and what becomes of the budget."""
    rows = [
        [
            format_bytes(_peak(each)) + (" *" if each is frontier.chosen else ""),
            f"{_peak(each) / max(each.squeezed.given_peak_bytes, 1):.1%}",
            f"{_share(each):+.2%}",
            f"{each.squeezed.clones:,}",
            again_of(each),
        ]
        for each in frontier.points
    ]
    columns = [
        Column(f"{frontier.pass_name}, within"),
        Column("as given", number=True),
        Column("operations", number=True),
        Column("steps again", number=True),
        Column("what runs again"),
    ]
    lines = table(columns, rows, indent=2)
    last = frontier.points[-1]
    lines.append(f"  no way to run these steps takes less than {format_bytes(last.least_bytes)}")
    if frontier.chosen is not None:
        lines.append(f"  {_verdict(frontier.chosen)}")
    return "\n" + "\n".join(lines) + "\n"


def _verdict(chosen: SqueezedGraph) -> str:
    assert chosen.budget_bytes is not None
    budget = format_bytes(chosen.budget_bytes)
    if chosen.status == "feasible":
        return f"* the cheapest plan within {budget}"
    return f"{budget} {'cannot be reached' if chosen.status == 'infeasible' else 'not found'}"


def frontier_json(frontier: Frontier) -> dict[str, object]:
    """Return the plans as JSON values."""
    chosen = frontier.chosen
    first = frontier.points[0]
    return {
        "pass": frontier.pass_name,
        "given_bytes": first.squeezed.given_peak_bytes,
        "least_bytes": min(each.least_bytes for each in frontier.points),
        "operations": first.squeezed.operations,
        "points": [
            {
                "peak_bytes": _peak(each),
                "added_operations": each.squeezed.added_operations,
                "clones": each.squeezed.clones,
                "tiles": each.tiles,
                "again": _runs_again(each),
                "chosen": each is chosen,
            }
            for each in frontier.points
        ],
        "budget_bytes": None if chosen is None else chosen.budget_bytes,
        "status": None if chosen is None else chosen.status,
    }


def frontier_picture(frontier: Frontier, model: str) -> FrontierPicture:
    """Make the picture of the plans."""
    chosen = frontier.chosen
    first = frontier.points[0].squeezed
    return FrontierPicture(
        model,
        f"operations against bytes, {frontier.pass_name}",
        tuple(
            FrontierPoint(_peak(each), _share(each), again_of(each), each is chosen)
            for each in frontier.points
        ),
        first.given_peak_bytes,
        min(each.least_bytes for each in frontier.points),
        None if chosen is None else chosen.budget_bytes,
    )


def again_of(found: SqueezedGraph) -> str:
    """Name the operators that run again, those with most runs first; empty if none does."""
    runs = _runs_again(found)
    shown = [f"{count:,} {operator}" for operator, count in list(runs.items())[:NAMED]]
    more = sum(list(runs.values())[NAMED:])
    return ", ".join([*shown, *([f"{more:,} more"] if more else [])])


def _runs_again(found: SqueezedGraph) -> dict[str, int]:
    seen: set[int] = set()
    runs: Counter[str] = Counter()
    for step, index in zip(found.squeezed.plan.schedule.steps, found.squeezed.origin, strict=True):
        if index in seen:
            runs[step.operator] += 1
        seen.add(index)
    return dict(runs.most_common())


def _peak(found: SqueezedGraph) -> int:
    return found.squeezed.plan.plan.peak_bytes


def _share(found: SqueezedGraph) -> float:
    return found.squeezed.added_operations / max(found.squeezed.operations, 1)
