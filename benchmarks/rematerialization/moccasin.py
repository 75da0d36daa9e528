"""Moccasin (Bartan and others 2023): rematerialization by intervals of retention, with CP-SAT.

Each value has up to `COPIES` intervals in which it is kept. The first begins where its node runs
for the first time, in the order given; a further one begins in any later stage, and the node runs
again there. Stage t has a place for every node up to t, so that a place says which node runs.
"""

from dataclasses import dataclass
from math import gcd

from benchmarks.rematerialization.answer import Answer
from benchmarks.rematerialization.layers import Work
from ortools.sat.python import cp_model

COPIES = 2


@dataclass(frozen=True, slots=True)
class _Interval:
    """A time in which a value is kept: places of its first and last step, and whether there is."""

    start: cp_model.IntVar
    stop: cp_model.IntVar
    is_there: cp_model.IntVar


def moccasin(work: Work, budget_bytes: int, seconds: float) -> Answer:
    """Solve the program; no node runs more than `COPIES` times.

    Args:
        work: The nodes.
        budget_bytes: Most live bytes.
        seconds: Time limit of the solver.
    """
    model = cp_model.CpModel()
    intervals = [_intervals(model, work.count, node) for node in range(work.count)]
    unit = gcd(*work.sizes)
    kept = [
        model.new_optional_interval_var(
            each.start,
            model.new_int_var(1, _places(work.count), ""),
            each.stop + 1,
            each.is_there,
            "",
        )
        for own in intervals
        for each in own
    ]
    demands = [size // unit for size, own in zip(work.sizes, intervals, strict=True) for _ in own]
    model.add_cumulative(kept, demands, budget_bytes // unit)
    for node, own in enumerate(intervals):
        for read in work.reads[node]:
            for each in own:
                _covered(model, each, intervals[read])
    model.add(intervals[-1][0].stop == _places(work.count) - 1)
    dearest = max(work.costs)
    costs = [-(-cost * 10**6 // dearest) for cost in work.costs]
    model.minimize(
        sum(
            cost * each.is_there
            for cost, own in zip(costs, intervals, strict=True)
            for each in own[1:]
        )
    )
    solver = cp_model.CpSolver()
    solver.parameters.max_time_in_seconds = seconds
    solver.parameters.num_workers = 2
    status = solver.solve(model)
    if status not in (cp_model.OPTIMAL, cp_model.FEASIBLE):
        return Answer()
    runs = sorted(
        (solver.value(each.start), node)
        for node, own in enumerate(intervals)
        for each in own
        if solver.value(each.is_there)
    )
    return Answer(tuple(node for _, node in runs), 0, status == cp_model.OPTIMAL)


def _places(stages: int) -> int:
    return stages * (stages + 1) // 2


def _intervals(model: cp_model.CpModel, count: int, node: int) -> list[_Interval]:
    """Make the intervals of a node's value, the later ones in later stages."""
    found: list[_Interval] = []
    places = [_places(stage) + node for stage in range(node, count)]
    for copy in range(COPIES):
        domain = cp_model.Domain.from_values(places[copy:] if copy else places[:1])
        is_there = model.new_constant(1) if not copy else model.new_bool_var("")
        if not domain.size():
            break
        start = model.new_int_var_from_domain(domain, "")
        stop = model.new_int_var(places[0], _places(count) - 1, "")
        model.add(start <= stop)
        if copy:
            model.add(start > found[-1].stop).only_enforce_if(is_there)
            model.add_implication(is_there, found[-1].is_there)
        found.append(_Interval(start, stop, is_there))
    return found


def _covered(model: cp_model.CpModel, reader: _Interval, sources: list[_Interval]) -> None:
    """A value that is read is kept from before its reader's place until then."""
    choices = []
    for source in sources:
        chosen = model.new_bool_var("")
        model.add_implication(chosen, source.is_there)
        model.add(source.start < reader.start).only_enforce_if(chosen)
        model.add(source.stop >= reader.start).only_enforce_if(chosen)
        choices.append(chosen)
    model.add_bool_or([*choices, reader.is_there.negated()])
