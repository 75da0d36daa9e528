"""Verifies plans for steps that run as soon as they can. It shares no code with any solver.

A *datum* is the bytes that one step writes: a value, and its views. Its writer and all its readers
touch it. Data that share bytes must be separate in time: every step that touches the one has ended
before the step that writes the other begins. It suffices that this holds, byte by byte, for data
that follow each other; then it holds for all, because the order is transitive.
"""

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from tightship.errors import InvalidPlanError
from tightship.planner.schedule import AliasKind, Schedule
from tightship.planner.schedule_plan import SchedulePlan

BLOCK = 8192
"""Number of steps whose descendants are found in one pass, with a bit for each in every step."""


@dataclass(slots=True, eq=False)
class _Datum:
    """Bytes `[start, stop)` that a step writes; `touched` are the steps that write or read them."""

    name: str
    writer: int
    start: int
    stop: int
    touched: set[int]
    parts: "list[_Datum]" = field(default_factory=list)
    over: "list[_Datum]" = field(default_factory=list)
    """Data that the writer may write over although it reads them."""


@dataclass(frozen=True, slots=True)
class _Demand:
    """A requirement that `before` has ended when `after` begins, because two data share bytes."""

    before: int
    after: int
    data: tuple[_Datum, _Datum]


def verify_parallel(plan: SchedulePlan, added: Iterable[tuple[int, int]] = ()) -> None:
    """Check that no order of steps that values and `added` edges allow corrupts a value.

    Args:
        plan: Offsets of values and scratch.
        added: Further edges (before, after) that the executor keeps to; none by default.

    Raises:
        InvalidPlanError: Two values share bytes although a step that needs the one and the step
            that writes the other may run in either order, or an added edge leads backwards.

    Complexity: O(data that share bytes + steps * edges / 64).
    """
    schedule = plan.schedule
    edges = _edges(schedule)
    for before, after in added:
        if not 0 <= before < after < len(schedule.steps):
            raise InvalidPlanError(
                f"The added edge from step {before} to step {after} does not lead to a later step "
                f"of the {len(schedule.steps)}."
            )
        edges[after].add(before)
    demands = list(_demands(_data(plan), kept=len(schedule.steps)))
    for demand in _unmet(demands, edges):
        one, other = demand.data
        raise InvalidPlanError(
            f"`{one.name}` at [{one.start}, {one.stop}) and `{other.name}` at [{other.start}, "
            f"{other.stop}) share bytes, but {_named(schedule, demand.before)} need not have ended "
            f"when {_named(schedule, demand.after)} begins."
        )


def _named(schedule: Schedule, index: int) -> str:
    if index == len(schedule.steps):
        return "the reader of the outputs"
    return f"step {index} `{schedule.steps[index].name}`"


def _edges(schedule: Schedule) -> list[set[int]]:
    """Return for each step the writers of its inputs, and the users of bytes that it overwrites."""
    writer: dict[int, int] = {}
    root: dict[int, int] = {}
    touched: dict[int, set[int]] = {}
    edges: list[set[int]] = []
    for index, step in enumerate(schedule.steps):
        before = {writer[value] for value in step.reads if value in writer}
        for alias in step.aliases:
            # These outputs are in the bytes of their input, so uses of both count as uses of the
            # first value.
            if alias.kind in (AliasKind.VIEW, AliasKind.TIED):
                root[alias.output] = root.get(alias.input, alias.input)
            if alias.kind is AliasKind.TIED:
                before |= touched.get(root[alias.output], set())
        for value in (*step.reads, *step.writes):
            touched.setdefault(root.get(value, value), set()).add(index)
        writer.update(dict.fromkeys(step.writes, index))
        edges.append(before)
    return edges


def _data(plan: SchedulePlan) -> list[_Datum]:
    """Return all data of the arena in the order in which they are written."""
    schedule = plan.schedule
    data: list[_Datum] = []
    of_value: dict[int, _Datum] = {}
    for index, step in enumerate(schedule.steps):
        for value in step.reads:
            if value in of_value:
                of_value[value].touched.add(index)
        written = _written(plan, index, of_value)
        of_value.update(written)
        data += [datum for datum in written.values() if datum.writer == index]
        offset = plan.scratch_offset(index)
        if offset is not None:
            name, stop = f"scratch of {step.name}", offset + step.scratch_bytes
            data.append(_Datum(name, index, offset, stop, {index}))
        _relate(schedule, index, of_value)
    for value in schedule.outputs:
        if value in of_value:
            of_value[value].touched.add(len(schedule.steps))
    return data


def _written(plan: SchedulePlan, index: int, of_value: Mapping[int, _Datum]) -> dict[int, _Datum]:
    """Return the data of a step's outputs: new ones, or those that the outputs are views of."""
    step = plan.schedule.steps[index]
    views = {a.output: a.input for a in step.aliases if a.kind is AliasKind.VIEW}
    found: dict[int, _Datum] = {}
    for value in step.writes:
        scheduled, offset = plan.schedule.values[value], plan.value_offset(value)
        if value in views:
            if views[value] in of_value:
                found[value] = of_value[views[value]]
        elif offset is not None and scheduled.size_bytes:
            stop = offset + scheduled.size_bytes
            found[value] = _Datum(scheduled.name, index, offset, stop, {index})
    return found


def _relate(schedule: Schedule, index: int, of_value: dict[int, _Datum]) -> None:
    """Record which inputs a step's outputs may overwrite, and which they contain already."""
    for alias in schedule.steps[index].aliases:
        one, other = of_value.get(alias.input), of_value.get(alias.output)
        if one is None or other is None or one is other:
            continue
        if alias.kind in (AliasKind.IN_PLACE, AliasKind.TIED):
            other.over.append(one)
        elif alias.kind is AliasKind.PART and one.start == other.start + alias.offset_bytes:
            other.parts += (one, *one.parts)


def _demands(data: Sequence[_Datum], kept: int) -> Iterator[_Demand]:
    """Yield the requirements between data that follow each other in some bytes."""
    tenancy = _Tenancy()
    for datum in data:
        for former in tenancy.enter(datum):
            allowed = {datum.writer} if former in datum.over else set()
            for touch in former.touched - allowed:
                yield _Demand(min(touch, kept), datum.writer, (former, datum))


class _Tenancy:
    """The data in each byte: disjoint ranges by increasing start."""

    def __init__(self) -> None:
        self._starts: list[int] = []
        self._ranges: list[tuple[int, int, tuple[_Datum, ...]]] = []

    def enter(self, datum: _Datum) -> list[_Datum]:
        """Assign a datum its bytes and return data that lose theirs; its own parts keep them."""
        first = max(0, bisect_right(self._starts, datum.start) - 1)
        last = first
        while last < len(self._ranges) and self._ranges[last][0] < datum.stop:
            last += 1
        replaced: list[tuple[int, int, tuple[_Datum, ...]]] = []
        leaving: dict[_Datum, None] = {}
        at = datum.start
        for start, stop, tenants in self._ranges[first:last]:
            low, high = max(start, datum.start), min(stop, datum.stop)
            if low >= high:
                replaced.append((start, stop, tenants))
                continue
            if start < low:
                replaced.append((start, low, tenants))
            if at < low:
                replaced.append((at, low, (datum,)))
            staying = tuple(tenant for tenant in tenants if tenant in datum.parts)
            leaving.update(dict.fromkeys(t for t in tenants if t not in datum.parts))
            replaced.append((low, high, (*staying, datum)))
            if high < stop:
                replaced.append((high, stop, tenants))
            at = high
        if at < datum.stop:
            replaced.append((at, datum.stop, (datum,)))
        replaced.sort(key=lambda entry: entry[0])
        self._ranges[first:last] = replaced
        self._starts[first:last] = [start for start, _, _ in replaced]
        return list(leaving)


def _unmet(demands: Sequence[_Demand], edges: Sequence[set[int]]) -> Iterator[_Demand]:
    """Yield requirements that no path of edges meets."""
    for demand in demands:
        if demand.before >= demand.after:
            yield demand
    for first in range(0, len(edges), BLOCK):
        here = [d for d in demands if first <= d.before < min(first + BLOCK, d.after)]
        if not here:
            continue
        ancestors = [0] * len(edges)  # a bit for each ancestor in the block, the step included
        for step in range(first, len(edges)):
            bits = 1 << (step - first) if step < first + BLOCK else 0
            for before in edges[step]:
                bits |= ancestors[before]
            ancestors[step] = bits
        for demand in here:
            if not ancestors[demand.after] >> (demand.before - first) & 1:
                yield demand
