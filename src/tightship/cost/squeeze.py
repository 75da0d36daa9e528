"""Squeezes a training step into as few bytes as possible: its graph, order and plan."""

from dataclasses import dataclass, replace
from typing import Literal

from tightship.cost.operations import operations_of
from tightship.cost.schedule import schedule_of
from tightship.cost.step_nodes import is_known, planned_nodes, renamed
from tightship.errors import InputError
from tightship.graph import Graph, Node
from tightship.graph.new_names import NewNames
from tightship.graph.tiles import in_tiles
from tightship.planner import Schedule
from tightship.planner.bound import lower_bound
from tightship.planner.liveness import problem_of
from tightship.planner.recompute_bound import least_bytes, least_operations
from tightship.planner.squeeze import Squeezed, Squeezing
from tightship.public_calls import public_call
from tightship.quantity import format_bytes, parse_bytes
from tightship.view.table import Column, table

LARGE = 10
"""Values of at least one part in `LARGE` of the peak found without tiles are cut into tiles."""

PIECES = 200
"""Tiles have at most one part in `PIECES` of that peak."""


LEAST_SHARE = 0.00005
"""Smallest share of operations that two digits of a percentage show as more than nothing."""


@dataclass(frozen=True, slots=True)
class SqueezedGraph:
    """A graph whose nodes run in a better order, some of them twice or in tiles, and its plan.

    Attributes:
        graph: The graph with clones and tiles under new names. Run node by node, in the layouts of
            `once`, its outputs equal those of the original graph bit for bit, if a product of some
            rows of a matrix equals these rows of the whole product.
        once: The graph in the original order, with tiles and without clones.
        outputs_again: Outputs of clones that are outputs of the graph: `Choice.like_outputs`.
        tiles: Number of nodes that the tiles add.
        squeezed: The plan of the graph's schedule. Operations and peaks before are those of the
            original graph; operations that join tiles count as added.
        eager_bytes: Largest live bytes of the original graph without in-place aliases.
        budget_bytes: The budget; None for as little as possible.
        least_bytes: Bytes that the steps take at least, in any order and however often they run;
            the fewer of the bounds for whole steps and for the tiles that were tried.
    """

    graph: Graph
    once: Graph
    outputs_again: frozenset[str]
    tiles: int
    squeezed: Squeezed
    eager_bytes: int
    budget_bytes: int | None
    least_bytes: int

    @property
    def status(self) -> Literal["feasible", "infeasible", "budget"]:
        """Verdict on the budget: met, proved to be too small, or neither."""
        limit = self.budget_bytes
        if limit is None or self.squeezed.plan.plan.peak_bytes <= limit:
            return "feasible"
        return "infeasible" if limit < self.least_bytes else "budget"


@public_call
def squeezed(graph: Graph, budget: str = "", operations_max: int | None = None) -> SqueezedGraph:
    """Squeeze a graph into a budget, or into as few bytes as possible.

    Args:
        graph: A typed graph: of a training step, as `updating_graph` makes it, or any other.
        budget: Bytes, as in `512MiB`; a percentage of `eager_bytes`, as in `30%`; or empty, the
            default, for as few bytes as possible.
        operations_max: The most operations to add; None, the default, sets no limit.

    Raises:
        InputError: The budget is neither an amount of memory nor a percentage.
        PlanError: The graph's values are bound in a way that no plan can satisfy.
    """
    return GraphSqueezing(graph).within(budget, operations_max)


class GraphSqueezing:
    """Plans of one graph for any number of budgets, which share what was found before.

    Attributes:
        graph: The graph.
        eager_bytes: Its largest live bytes without in-place aliases.
        whole: Its schedule, without tiles.
    """

    def __init__(self, graph: Graph) -> None:
        """Count the operations of a typed graph, and reorder it."""
        self.graph = graph
        self._schedule, operations = priced(graph)
        self.eager_bytes = eager_bytes_of(self._schedule)
        self.whole = Squeezing(self._schedule, operations)
        self._cuts: dict[int, tuple[Graph, Squeezing] | None] = {}
        self._least = least_bytes(self._schedule)

    def within(self, budget: str = "", operations_max: int | None = None) -> SqueezedGraph:
        """Squeeze the graph as `squeezed` does."""
        limit = _budget_bytes(budget, self.eager_bytes) if budget else None
        return self.within_bytes(limit, operations_max)

    def within_bytes(self, limit: int | None, operations_max: int | None = None) -> SqueezedGraph:
        """Squeeze the graph as `squeezed` does, into bytes; None asks for as few as possible."""
        found = self.whole.within(limit, operations_max)
        once, least = self.graph, self._least
        if found.added_operations or limit is None or found.plan.plan.peak_bytes > limit:
            cut = self._cut(found.plan.plan.peak_bytes)
            if cut is not None:
                least = min(least, least_bytes(cut[1].schedule))
                other = self._in_tiles(cut[1], limit, operations_max)
                if _rank(other, limit) < _rank(found, limit):
                    once, found = cut[0], other
        tiles = len(once.nodes) - len(self.graph.nodes)
        made, again = _run_in(once, found)
        return SqueezedGraph(made, once, again, tiles, found, self.eager_bytes, limit, least)

    def _cut(self, peak: int) -> tuple[Graph, Squeezing] | None:
        """Cut values that are large beside a peak into tiles; None if none can be."""
        if peak not in self._cuts:
            cut = in_tiles(self.graph, peak // LARGE, peak // PIECES)
            self._cuts[peak] = None if cut is self.graph else (cut, Squeezing(*priced(cut)))
        return self._cuts[peak]

    def _in_tiles(self, cut: Squeezing, limit: int | None, operations_max: int | None) -> Squeezed:
        """Squeeze the graph in tiles, with what joins them counted as added."""
        plain = self.whole.plain
        more = cut.plain.operations - plain.operations
        most = None if operations_max is None else operations_max - more
        other = cut.within(limit, most)
        return replace(
            other,
            given_peak_bytes=plain.given_peak_bytes,
            reordered_peak_bytes=plain.reordered_peak_bytes,
            operations=plain.operations,
            added_operations=other.added_operations + more,
        )


def _rank(found: Squeezed, limit: int | None) -> tuple[bool, int, int]:
    """Rank results, less is better: within the limit by added operations, otherwise by peak."""
    peak, added = found.plan.plan.peak_bytes, found.added_operations
    if limit is not None and peak <= limit:
        return False, added, peak
    return True, peak, added


def _run_in(graph: Graph, found: Squeezed) -> tuple[Graph, frozenset[str]]:
    """Return the graph with the nodes of a squeezed schedule, and outputs that clones compute."""
    before = [node for node in graph.nodes if is_known(graph, node)]
    made, again = _rewritten(graph, planned_nodes(graph), found)
    values = {new: replace(graph.value(old), name=new) for new, old in again.items()}
    outputs = frozenset(new for new, old in again.items() if old in graph.outputs)
    made_graph = replace(graph, nodes=(*before, *made), values={**graph.values, **values})
    return made_graph, outputs


def least_added(graph: Graph, budget_bytes: int) -> int:
    """Bound from below the operations that any execution within a budget adds.

    Args:
        graph: A typed graph.
        budget_bytes: The peak to stay within.
    """
    schedule, operations = priced(graph)
    return least_operations(schedule, operations, budget_bytes)


def priced(graph: Graph) -> tuple[Schedule, list[int]]:
    """Return the schedule of a graph, and the operations of running each step again."""
    return schedule_of(graph).schedule, [
        operations_of(graph, node) for node in planned_nodes(graph)
    ]


def eager_bytes_of(schedule: Schedule) -> int:
    """Return the largest live bytes without in-place aliases."""
    return lower_bound(problem_of(schedule, in_place=False).problem)


def squeeze_report(found: SqueezedGraph, least: int) -> str:
    """Format the peaks before and after, the effect of each technique, and the lower bound."""
    squeezed, peak = found.squeezed, found.squeezed.plan.plan.peak_bytes
    rows = [
        ["nothing in place", format_bytes(found.eager_bytes), ""],
        ["planned, in place", format_bytes(squeezed.given_peak_bytes), ""],
        ["in a better order", format_bytes(squeezed.reordered_peak_bytes), ""],
        [
            "computed again, in tiles" if found.tiles else "computed again",
            format_bytes(peak),
            _added(squeezed),
        ],
    ]
    columns = [Column("a training step, squeezed"), Column("peak", number=True), Column("adds")]
    lines = table(columns, rows, indent=2)
    if found.tiles:
        lines.append(f"  tiles of large values are {found.tiles:,} steps more")
    if least >= LEAST_SHARE * squeezed.operations and least:
        lines.append(
            f"  every way to run these steps in that adds at least {_share(squeezed, least)}"
        )
    if found.budget_bytes is not None and found.status != "feasible":
        verdict = "cannot be reached" if found.status == "infeasible" else "not found"
        lines.append(
            f"  {format_bytes(found.budget_bytes)} {verdict}: these steps take at least "
            f"{format_bytes(found.least_bytes)}, however they run"
        )
    return "\n" + "\n".join(lines) + "\n"


def squeeze_json(found: SqueezedGraph, least: int) -> dict[str, object]:
    """Return the report as JSON values."""
    squeezed = found.squeezed
    return {
        "eager_bytes": found.eager_bytes,
        "planned_bytes": squeezed.given_peak_bytes,
        "reordered_bytes": squeezed.reordered_peak_bytes,
        "squeezed_bytes": squeezed.plan.plan.peak_bytes,
        "budget_bytes": found.budget_bytes,
        "status": found.status,
        "least_bytes": found.least_bytes,
        "operations": squeezed.operations,
        "added_operations": squeezed.added_operations,
        "least_operations": least,
        "clones": squeezed.clones,
        "tiles": found.tiles,
    }


def _added(squeezed: Squeezed) -> str:
    """Describe what a plan adds; empty if it adds nothing."""
    if not squeezed.clones and not squeezed.added_operations:
        return ""
    return f"{squeezed.clones:,} steps, {_share(squeezed, squeezed.added_operations)}"


def _share(squeezed: Squeezed, operations: int) -> str:
    """Describe added operations as a share."""
    if not operations:
        return "no more operations"
    if not squeezed.operations:
        return f"{operations:,} more operations"
    share = operations / squeezed.operations
    shown = f"{share:.2%}" if share >= LEAST_SHARE else f"less than {2 * LEAST_SHARE:.2%}"
    return f"{shown} more operations"


def _budget_bytes(budget: str, eager_bytes: int) -> int:
    if not budget.endswith("%"):
        return parse_bytes(budget)
    try:
        share = float(budget[:-1])
    except ValueError:
        share = 0.0
    if not 0 < share <= 100:
        raise InputError(
            f"`{budget}` is not a share of a peak; give a percentage above 0% and up to 100%, such "
            "as 30%, or bytes."
        )
    return int(eager_bytes * share / 100)


def _rewritten(
    graph: Graph, nodes: list[Node], found: Squeezed
) -> tuple[list[Node], dict[str, str]]:
    """Return nodes in the order of a squeezed schedule, and the originals of clones' outputs."""
    names = _names(graph, found)
    given = schedule_of(graph).schedule.steps
    made: list[Node] = []
    again: dict[str, str] = {}
    for step, index in zip(found.plan.schedule.steps, found.origin, strict=True):
        node = nodes[index]
        made.append(renamed(node, step, given[index], names))
        pairs = zip(node.writes, made[-1].writes, strict=True)
        again |= {new: old for old, new in pairs if old != new}
    return made, again


def _names(graph: Graph, found: Squeezed) -> list[str]:
    """Return the name of each value of a schedule, with new names for clones' outputs."""
    names = [value.name for value in found.plan.schedule.values]
    new = NewNames(graph)
    return [*names[: found.given_values], *map(new.new, names[found.given_values :])]
