"""Tells which outputs of a program may be written over which inputs."""

from collections import defaultdict
from typing import NamedTuple

from tightship.engine.program.program import Lowered, LoweredStep, Operand, Space

Slot = tuple[Space, int]
OVERWRITING = frozenset({"append", "copy"})
"""Kernels that write their first operand's bytes in place, or copy them."""


class SlotUses(NamedTuple):
    """Steps of a program by the slots that they read and write."""

    lowered: Lowered
    readers: dict[Slot, list[int]]
    writers: dict[Slot, list[int]]

    @staticmethod
    def of(lowered: Lowered) -> "SlotUses":
        """Find them in one pass, which serves any number of outputs."""
        readers: dict[Slot, list[int]] = defaultdict(list)
        writers: dict[Slot, list[int]] = defaultdict(list)
        for index, step in enumerate(lowered.steps):
            for operands, uses in ((step.reads, readers), (step.writes, writers)):
                for each in operands:
                    uses[each.space, each.slot].append(index)
        return SlotUses(lowered, readers, writers)

    def why_unsafe(self, output: str, input_: str) -> str:
        """Return why an output must not have the bytes of an input; empty if it may.

        It may if no step reads the input once a step has written the output, and if the step that
        writes it leaves alone what it does not replace.

        Args:
            output: Name of an output of the input's size.
            input_: Name of an input. Steps run one after another.
        """
        target, source = self.lowered.outputs[output], self.lowered.inputs[input_]
        if target.space is not Space.EXTERNAL or source.space is not Space.EXTERNAL:
            return "one of them has no place in memory that is known before the run"
        writers = sorted(set(self.writers.get((target.space, target.slot), ())))
        if len(writers) != 1:
            return f"{len(writers)} steps write the output in parts"
        (index,) = writers
        step, readers = self.lowered.steps[index], self.readers.get((source.space, source.slot), ())
        late = next((self.lowered.steps[each] for each in readers if each > index), None)
        if late is not None:
            return f"step `{late.name}` reads the input after step `{step.name}` wrote the output"
        if index in readers and not _keeps(step, source):
            return (
                f"step `{step.name}` ({step.operator}) reads the input while it writes the output"
            )
        return ""


def why_unsafe(lowered: Lowered, output: str, input_: str) -> str:
    """Return why an output must not have the bytes of an input, as `SlotUses.why_unsafe`."""
    return SlotUses.of(lowered).why_unsafe(output, input_)


def _keeps(step: LoweredStep, source: Operand) -> bool:
    """Whether a step that reads and writes the same bytes keeps those that it does not replace."""
    first, *others = step.reads
    return step.implementation in OVERWRITING and _has((first,), source) and (
        not _has(tuple(others), source)
    )  # fmt: skip


def _has(operands: tuple[Operand, ...], wanted: Operand) -> bool:
    return any((each.space, each.slot) == (wanted.space, wanted.slot) for each in operands)
