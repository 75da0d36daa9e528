"""Computes the memory of a schedule under each technique of the memory note."""

from collections.abc import Mapping
from dataclasses import dataclass

from tightship.planner.alias_choice import NOTHING, choose_in_turn
from tightship.planner.alias_group import alias_groups_of
from tightship.planner.bound import lower_bound
from tightship.planner.liveness import buffers_of
from tightship.planner.placements.shared_objects import MATCH_RANGE
from tightship.planner.planning import smaller_plan
from tightship.planner.portfolio import place
from tightship.planner.schedule import Schedule
from tightship.planner.schedule_plan import SchedulePlan
from tightship.planner.scheme.colour import colour
from tightship.planner.scheme.imperative import Imperative, run_buffers
from tightship.planner.scheme.reference_count import MATCH_RANGES, recycled_bytes

COLOURED_MAX = 2_000
"""Most buffers for which a cost includes colouring, whose time is quadratic."""


@dataclass(frozen=True, slots=True)
class Columns:
    """Bytes by strategy, all with the alignment of each value: blocks are whole multiples of it.

    Attributes:
        naive_bytes: Every value in a buffer of its own.
        in_place_bytes: Outputs written over inputs that no other step needs, as in the note.
        shared_bytes: Whole blocks recycled by the note's walk, without in-place.
        both_bytes: Whole blocks recycled, with in-place.
        arena_bytes: One arena with offsets, and in-place chosen together with them.
        lower_bound_bytes: Largest live bytes: the least peak of any plan without in-place.
        lower_bound_in_place_bytes: The same, with the in-place choices that keep live bytes lowest.
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
    """The effect of one technique: bytes with it alone, and bytes with all techniques but it."""

    name: str
    alone_bytes: int
    without_bytes: int


@dataclass(frozen=True, slots=True)
class Cost:
    """The memory of one schedule by technique.

    Attributes:
        planned: The plan behind `columns.arena_bytes`.
        levers: The effect of each technique, in the order in which they build on one another.
        schemes: Bytes of further strategies, by name.
        imperative: The same operations, run one by one by a framework that allocates each result.
        held: The same as `imperative`, with a reference kept to every value.
    """

    planned: SchedulePlan
    columns: Columns
    levers: tuple[Lever, ...]
    schemes: Mapping[str, int]
    imperative: Imperative
    held: Imperative


def columns_of(schedule: Schedule) -> Columns:
    """Compute the bytes of a schedule by strategy, without keeping its plan."""
    return _Ways(schedule).columns


def cost(schedule: Schedule) -> Cost:
    """Plan a schedule by every strategy and compute the effect of each technique.

    Raises:
        PlanError: Values are bound to each other in a way that no plan can satisfy.

    Complexity: O(n log n), but O(n^2) for colouring, up to `COLOURED_MAX` buffers.
    """
    ways = _Ways(schedule)
    columns, merged = ways.columns, ways.merged.problem
    packed = place(ways.apart).peak_bytes
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
        groups = alias_groups_of(schedule)
        self.buffers = buffers_of(schedule, groups, NOTHING)
        self.apart = self.buffers.problem
        self.merged, merged = (
            buffers_of(schedule, groups, chosen) for chosen in choose_in_turn(schedule, groups)
        )
        self.planned = smaller_plan(schedule, merged, lambda: self.buffers)
        arena = self.planned.plan.peak_bytes
        chosen = min(arena, lower_bound(merged.problem))
        self.columns = Columns(
            naive_bytes=recycled_bytes(self.apart, 0),
            in_place_bytes=recycled_bytes(self.merged.problem, 0),
            shared_bytes=recycled_bytes(self.apart, MATCH_RANGE),
            both_bytes=recycled_bytes(self.merged.problem, MATCH_RANGE),
            arena_bytes=arena,
            lower_bound_bytes=lower_bound(self.apart),
            lower_bound_in_place_bytes=chosen,
        )
