"""A schedule of big operations: what can be computed where it is made, in one step."""

from collections import Counter
from dataclasses import dataclass, replace

from tightship.planner.schedule import Alias, AliasKind, Schedule, Step


@dataclass(frozen=True, slots=True)
class _Block:
    """Steps that run as one, and what they read other than element by element."""

    step: Step
    heavy_reads: frozenset[int]


def in_blocks(schedule: Schedule) -> Schedule:
    """The schedule with elementwise steps joined to the step whose only output they read.

    A step is joined that may write over that output, if nobody else reads it: a convolution, its
    normalization and its activation become one. A block runs where its last step ran. What it
    reads may be written over unless the first of its steps reads it.

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
    """Inputs that the one output of a step may be written over, as large as it is."""
    values = schedule.values
    return [
        alias.input
        for alias in step.aliases
        if alias.kind is AliasKind.IN_PLACE
        and len(step.writes) == 1
        and values[alias.input].size_bytes == values[alias.output].size_bytes
    ]


def _joined(first: _Block, last: _Block, value: int) -> _Block:
    """Two blocks as one; `value` is what the one passes to the other."""
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
