"""Makes a picture of the arena of a graph."""

from collections import defaultdict

from tightship.cost.model_cost import ModelCost
from tightship.planner import Alias, AliasKind, Schedule
from tightship.planner.schedule_plan import SchedulePlan
from tightship.view.picture import Picture, Rectangle, Step


def picture_of(cost: ModelCost, *, training: bool = False) -> Picture:
    """Make the picture of all tensors at their offsets, with live bytes by step, in graph bytes.

    Args:
        cost: The memory of a model.
        training: Whether to draw its training step, which it then must have; False by default.
    """
    drawn = cost.trained if training and cost.trained is not None else cost.cost
    planned, columns = drawn.planned, drawn.columns
    schedule, plan = planned.schedule, planned.plan
    names, shown = [value.name for value in schedule.values], _shown(schedule)
    load = plan.problem.live_bytes(len(schedule.steps)).tolist()
    return Picture(
        title=f"{cost.model} ({'training, ' if training else ''}graph bytes)",
        arena_bytes=plan.peak_bytes,
        lower_bound_bytes=plan.lower_bound_bytes,
        rectangles=_rectangles(planned),
        steps=tuple(
            Step(
                step.name,
                step.operator,
                "",
                live_bytes,
                None,
                tuple([names[value] for value in step.reads]),
                tuple([names[value] for value in step.writes]),
            )
            for step, live_bytes in zip(schedule.steps, load, strict=True)
        ),
        strategy="arena",
        strategies={
            "naive": columns.naive_bytes,
            "in-place": columns.in_place_bytes,
            "shared": columns.shared_bytes,
            "both": columns.both_bytes,
            "arena": columns.arena_bytes,
        },
        inputs=dict.fromkeys((names[value] for value in _inputs(schedule)), ""),
        views={names[value]: names[of] for value, of in enumerate(shown) if value != of},
    )


def _inputs(schedule: Schedule) -> list[int]:
    """Return the values that come from outside, without weights that a step updates."""
    inside = {value for step in schedule.steps for value in step.writes}
    for step in schedule.steps:
        inside.update(alias.input for alias in step.aliases if alias.kind is AliasKind.TIED)
    return [
        index
        for index, value in enumerate(schedule.values)
        if value.external and index not in inside
    ]


def _rectangles(planned: SchedulePlan) -> tuple[Rectangle, ...]:
    """Make a rectangle for each value in the arena; views extend the value that they show."""
    schedule = planned.schedule
    shown = _shown(schedule)
    stop = defaultdict[int, int](int)
    start: dict[int, int] = {}
    for index, step in enumerate(schedule.steps):
        for value in step.writes:
            start.setdefault(shown[value], index)
        for value in (*step.reads, *step.writes):
            stop[shown[value]] = index + 1
    for value in schedule.outputs:
        stop[shown[value]] = len(schedule.steps)
    over = _overwritten(schedule, (*planned.buffers.parts, *planned.buffers.in_place))
    rectangles = []
    for value, scheduled in enumerate(schedule.values):
        offset = planned.value_offset(value)
        if offset is not None and shown[value] == value:
            host = schedule.values[over[value]].name if value in over else None
            rectangles.append(
                Rectangle(scheduled.name, scheduled.size_bytes, offset, start[value], stop[value],
                          shares_with=host)
            )  # fmt: skip
    return tuple(rectangles)


def _shown(schedule: Schedule) -> list[int]:
    """Return for each value the value whose bytes it shows; itself if it is not a view."""
    shown = list(range(len(schedule.values)))
    for step in schedule.steps:
        for alias in step.aliases:
            if alias.kind is AliasKind.VIEW:
                shown[alias.output] = shown[alias.input]
    return shown


def _overwritten(schedule: Schedule, taken: tuple[Alias, ...]) -> dict[int, int]:
    """Map values that took over bytes to the values that had them."""
    tied = (a for step in schedule.steps for a in step.aliases if a.kind is AliasKind.TIED)
    return {alias.output: alias.input for alias in (*tied, *taken)}
