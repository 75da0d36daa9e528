"""Coarsens a schedule: joins elementwise steps to the operation whose output they read."""

from collections import Counter
from dataclasses import dataclass, replace

from tightship.planner.schedule import Alias, AliasKind, Schedule, Step


@dataclass(frozen=True, slots=True)
class _Block:
    """Steps that run as one, and the values that they read other than element by element."""

    step: Step
    heavy_reads: frozenset[int]


def in_blocks(schedule: Schedule) -> Schedule:
    """Join elementwise steps to the step whose only output they read.

    A step is joined if it may write over that output and is its only reader: a convolution, its
    normalization and its activation become one step. A block runs at the position of its last step.
    It may write over its inputs, except those that one of its steps reads other than element by
    element.

    Returns:
        A schedule with the same values and fewer steps.

    Complexity: O(values + reads).
    """
    readers = Counter(value for step in schedule.steps for value in step.reads)
    readers.update(schedule.outputs)
    bound = {
        value
        for step in schedule.steps
        for alias in step.aliases
        if alias.kind is not AliasKind.IN_PLACE
        for value in (alias.output, alias.input)
    }
    maker: dict[int, int] = {}
    blocks: dict[int, _Block] = {}
    for index, step in enumerate(schedule.steps):
        joined = next(
            (
                value
                for value in _written_over(schedule, step)
                if value in maker and readers[value] == 1 and value not in bound
            ),
            None,
        )
        block = _Block(step, frozenset(step.reads) - {alias.input for alias in step.aliases})
        if joined is not None:
            block = _joined(blocks.pop(maker.pop(joined)), block, joined)
        blocks[index] = block
        if len(step.writes) == 1:
            maker[step.writes[0]] = index
    return replace(schedule, steps=tuple(blocks[index].step for index in sorted(blocks)))


def _written_over(schedule: Schedule, step: Step) -> list[int]:
    """Return the inputs of equal size that the only output of a step may overwrite."""
    values = schedule.values
    return [
        alias.input
        for alias in step.aliases
        if alias.kind is AliasKind.IN_PLACE
        and len(step.writes) == 1
        and values[alias.input].size_bytes == values[alias.output].size_bytes
    ]


def _joined(first: _Block, last: _Block, value: int) -> _Block:
    """Join two blocks; `value` is the value that the first passes to the last."""
    output = last.step.writes[0]
    heavy = first.heavy_reads | last.heavy_reads
    reads = dict.fromkeys((*first.step.reads, *last.step.reads))
    del reads[value]
    sources = dict.fromkeys(
        alias.input
        for alias in (*first.step.aliases, *last.step.aliases)
        if alias.input != value and alias.input not in heavy
    )
    return _Block(
        Step(
            first.step.name,
            f"{first.step.operator}+{last.step.operator}",
            tuple(reads),
            last.step.writes,
            max(first.step.scratch_bytes, last.step.scratch_bytes),
            tuple(Alias(output, source, AliasKind.IN_PLACE) for source in sources),
        ),
        heavy,
    )
