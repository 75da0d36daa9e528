"""What a schedule costs under each idea of the memory note, and what each idea saves."""

from collections.abc import Mapping
from dataclasses import dataclass

from tightship.planner.alias_choice import NOTHING, choose_in_turn
from tightship.planner.bound import lower_bound
from tightship.planner.cell import cells_of
from tightship.planner.liveness import buffers_of
from tightship.planner.place.shared_objects import MATCH_RANGE
from tightship.planner.planning import smaller_plan
from tightship.planner.portfolio import solve
from tightship.planner.schedule import Schedule
from tightship.planner.schedule_plan import SchedulePlan
from tightship.planner.scheme.colour import colour
from tightship.planner.scheme.imperative import Imperative, run_buffers
from tightship.planner.scheme.reference_count import MATCH_RANGES, recycled_bytes

COLOURED_MAX = 2_000
"""Buffers up to which colouring, which is quadratic, is part of a cost."""


@dataclass(frozen=True, slots=True)
class Columns:
    """Bytes by strategy; those of whole blocks are sums of sizes, without padding between them.

    Attributes:
        naive_bytes: Every value in a buffer of its own.
        in_place_bytes: Outputs written over inputs that nobody else needs, as the note does it.
        shared_bytes: Whole blocks recycled by the note's walk, without in-place.
        both_bytes: The walk with both.
        arena_bytes: One arena with offsets, in-place chosen with them.
        lower_bound_bytes: What no plan without in-place goes below: the largest load.
        lower_bound_in_place_bytes: The same with the in-place choices that keep the load lowest.
    """

    naive_bytes: int
    in_place_bytes: int
    shared_bytes: int
    both_bytes: int
    arena_bytes: int
    lower_bound_bytes: int
    lower_bound_in_place_bytes: int


@dataclass(frozen=True, slots=True)
class Lever:
    """What one idea gives: bytes with it and nothing else, and bytes with all but it."""

    name: str
    alone_bytes: int
    without_bytes: int


@dataclass(frozen=True, slots=True)
class Cost:
    """The cost of one schedule.

    Attributes:
        planned: The plan behind `columns.arena_bytes`.
        levers: What each idea gives alone and last, in the order in which they build on another.
        schemes: Bytes of further ways to plan, by name.
        imperative: The same operations, run one by one by a framework that allocates.
        held: The same, with a reference kept to every value.
    """

    planned: SchedulePlan
    columns: Columns
    levers: tuple[Lever, ...]
    schemes: Mapping[str, int]
    imperative: Imperative
    held: Imperative


def columns_of(schedule: Schedule) -> Columns:
    """What a schedule costs by strategy; its plan is not kept."""
    return _Ways(schedule).columns


def cost(schedule: Schedule) -> Cost:
    """Plan a schedule in every way there is, and say what each idea is worth.

    Raises:
        PlanError: Values are bound to each other in a way that no plan can honour.

    Complexity: O(n log n), but O(n^2) for colours, up to `COLOURED_MAX` buffers.
    """
    ways = _Ways(schedule)
    columns, merged = ways.columns, ways.merged.problem
    packed = solve(ways.apart).peak_bytes
    equal = recycled_bytes(merged, 1)
    levers = (
        Lever("in-place", columns.in_place_bytes, packed),
        Lever("sharing, equal sizes", recycled_bytes(ways.apart, 1), columns.in_place_bytes),
        Lever("sharing, other sizes", columns.shared_bytes, equal),
        Lever("offsets in an arena", packed, columns.both_bytes),
    )
    ranges = (equal, *(recycled_bytes(merged, each) for each in MATCH_RANGES[1:]))
    schemes = {"both, best match range": min(ranges)}
    if merged.count <= COLOURED_MAX:
        schemes["in-place and colours"] = colour(schedule).total_bytes
    return Cost(
        ways.planned,
        columns,
        levers,
        schemes,
        run_buffers(ways.buffers, schedule.outputs),
        run_buffers(ways.buffers, schedule.outputs, hold_references=True),
    )


class _Ways:
    """The problems of a schedule, each made once, and its plan."""

    def __init__(self, schedule: Schedule) -> None:
        cells = cells_of(schedule)
        self.buffers = buffers_of(schedule, cells, NOTHING)
        self.apart = self.buffers.problem
        self.merged, merged = (
            buffers_of(schedule, cells, chosen) for chosen in choose_in_turn(schedule, cells)
        )
        self.planned = smaller_plan(schedule, merged, lambda: self.buffers)
        arena = self.planned.plan.peak_bytes
        chosen = min(arena, lower_bound(merged.problem))
        self.columns = Columns(
            naive_bytes=self.apart.total_bytes,
            in_place_bytes=self.merged.problem.total_bytes,
            shared_bytes=recycled_bytes(self.apart, MATCH_RANGE),
            both_bytes=recycled_bytes(self.merged.problem, MATCH_RANGE),
            arena_bytes=arena,
            lower_bound_bytes=lower_bound(self.apart),
            lower_bound_in_place_bytes=chosen,
        )
