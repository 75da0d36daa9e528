"""Writes values directly to the caller's memory where an output is a copy of their bytes.

If nothing moves between a value and an output, as for an image with channels last that is
transposed for output, a step copies the bytes to the caller. This pass makes the caller's memory
the value's home from its first writer on.
"""

from collections.abc import Mapping

from tightship.engine.lower.steps.relocated_work import relocated_work
from tightship.engine.program.program import Lowered, LoweredStep, Operand, Space
from tightship.planner import AliasKind


def write_outputs_directly(lowered: Lowered) -> Lowered:
    """Remove copies of whole slots to the caller; the peak does not grow."""
    ties, bound = _ties(lowered), _bound(lowered)
    homes: dict[int, int] = {}
    gone: set[str] = set()
    for step in lowered.steps:
        delivery = _delivery(lowered, step)
        if delivery is None:
            continue
        slot, target = delivery
        tied = _tied(slot, ties)
        sizes = {lowered.slots[each].size_bytes for each in tied}
        if len(sizes) == 1 and bound.isdisjoint(tied) and homes.keys().isdisjoint(tied):
            homes |= dict.fromkeys(tied, target)
            gone.add(step.name)
    if not homes:
        return lowered
    steps = [_moved(step, homes) for step in lowered.steps if step.name not in gone]
    return lowered._replace(steps=tuple(steps))


def _ties(lowered: Lowered) -> dict[int, int]:
    """Map slots to the slots whose bytes they must overwrite."""
    return {
        sharing.output: sharing.input
        for step in lowered.steps
        for sharing in step.sharing
        if sharing.kind is AliasKind.TIED
    }


def _tied(slot: int, ties: Mapping[int, int]) -> list[int]:
    """List a slot, and those that have its bytes before it."""
    found = [slot]
    while found[-1] in ties:
        found.append(ties[found[-1]])
    return found


def _delivery(lowered: Lowered, step: LoweredStep) -> tuple[int, int] | None:
    """Return the slot that a step copies whole to the caller, and the caller's slot."""
    if step.operator != "Copy" or step.implementation != "copy":
        return None
    (source,), (target,) = step.reads, step.writes
    is_output = target.space is Space.EXTERNAL and lowered.outputs.get(target.name) == target
    if not is_output or source.space is not Space.ARENA:
        return None
    slots = lowered.slots
    is_whole = slots[source.slot].size_bytes == source.size_bytes == slots[target.slot].size_bytes
    return (source.slot, target.slot) if is_whole else None


def _bound(lowered: Lowered) -> set[int]:
    """Find slots that hold several values, or of which an operand is a part."""
    shared = [
        slot
        for step in lowered.steps
        for sharing in step.sharing
        if sharing.kind in (AliasKind.VIEW, AliasKind.PART)
        for slot in (sharing.input, sharing.output)
    ]
    tied = [
        sharing.input
        for step in lowered.steps
        for sharing in step.sharing
        if sharing.kind is AliasKind.TIED
    ]
    parts = [
        operand.slot
        for step in lowered.steps
        for operand in (*step.reads, *step.writes)
        if operand.space is Space.ARENA and operand.offset_bytes
    ]
    return {*shared, *parts, *(slot for slot in tied if tied.count(slot) > 1)}


def _moved(step: LoweredStep, homes: Mapping[int, int]) -> LoweredStep:
    """Move a step's operands to their new homes, which are not overwritten in place."""

    def move(operand: Operand) -> Operand:
        if operand.space is not Space.ARENA or operand.slot not in homes:
            return operand
        return operand._replace(space=Space.EXTERNAL, slot=homes[operand.slot])

    return step._replace(
        reads=tuple(map(move, step.reads)),
        writes=tuple(map(move, step.writes)),
        work=relocated_work(step.work, move),
        sharing=tuple(s for s in step.sharing if s.input not in homes and s.output not in homes),
    )
