"""Records which steps touch which bytes."""

from collections.abc import Iterator, Sequence

import numpy as np

from tightship._core import BufferOrder, StepOrder
from tightship.planner.alias_group import AliasGroup
from tightship.planner.schedule import Schedule, Step
from tightship.planner.schedule_plan import NO_BUFFER, Buffers


def touched_groups(schedule: Schedule, groups: Sequence[AliasGroup]) -> dict[AliasGroup, list[int]]:
    """Return the steps that read or write a value of each alias group, in increasing order."""
    found: dict[AliasGroup, list[int]] = {group: [] for group in groups}
    for index, step in enumerate(schedule.steps):
        for group in dict.fromkeys(groups[value] for value in _operands(step)):
            found[group].append(index)
    return found


def buffer_order(schedule: Schedule, buffers: Buffers, order: StepOrder) -> BufferOrder:
    """Make the partial order of buffers that follows from the partial order of steps."""
    steps: list[list[int]] = [[] for _ in range(buffers.problem.count)]
    for index, step in enumerate(schedule.steps):
        for buffer in dict.fromkeys(_buffers_of(buffers, index, step)):
            steps[buffer].append(index)
    kept = {buffers.of_value[value] for value in schedule.outputs}
    return BufferOrder(
        order,
        np.array([index for touched in steps for index in touched], np.int64),
        np.cumsum([len(touched) for touched in steps], dtype=np.int64),
        np.array([buffer in kept for buffer in range(len(steps))], np.int64),
    )


def overwriting_edges(schedule: Schedule, buffers: Buffers) -> Iterator[tuple[int, int]]:
    """Yield steps that touch bytes of a buffer, with later steps that overwrite these in place.

    The edges follow the order of the schedule.
    """
    writes = {alias.output for alias in buffers.in_place}
    touched: dict[int, list[tuple[int, int]]] = {}
    for index, step in enumerate(schedule.steps):
        over = [value for value in step.writes if value in writes]
        for value in over:
            start, stop = _bytes_of(schedule, buffers, value)
            for before, other in touched.get(buffers.of_value[value], ()):
                other_start, other_stop = _bytes_of(schedule, buffers, other)
                if start < other_stop and other_start < stop:
                    yield before, index
        for value in _operands(step):
            if (buffer := buffers.of_value[value]) != NO_BUFFER:
                touched.setdefault(buffer, []).append((index, value))


def _bytes_of(schedule: Schedule, buffers: Buffers, value: int) -> tuple[int, int]:
    start = buffers.inside.get(value, 0)
    return start, start + schedule.values[value].size_bytes


def _buffers_of(buffers: Buffers, index: int, step: Step) -> Iterator[int]:
    yield from (b for v in _operands(step) if (b := buffers.of_value[v]) != NO_BUFFER)
    if buffers.of_scratch[index] != NO_BUFFER:
        yield buffers.of_scratch[index]


def _operands(step: Step) -> tuple[int, ...]:
    return *step.reads, *step.writes
