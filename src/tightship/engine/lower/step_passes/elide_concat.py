"""Removes concatenations by writing operands directly into the result.

An operand whose bytes would be copied unchanged to one interval of the result gets that interval as
its home. A result may be a part of a larger one, as a growing prefix is in a DenseNet. Values in
one interval live as long as the longest-lived of them, so a concatenation stays where memory would
grow.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from tightship._core import MemoryDesc
from tightship.engine.lower.steps.relocated_work import relocated_work
from tightship.engine.program.program import (
    Lowered,
    LoweredStep,
    Operand,
    PrimitiveWork,
    Space,
)
from tightship.engine.program.schedule import ALIGNMENT, schedule_of
from tightship.planner import AliasKind
from tightship.planner.bound import lower_bound
from tightship.planner.liveness import problem_of

DST = 17


def elide_concat(lowered: Lowered) -> Lowered:
    """Remove as many concatenations as the peak allows, the first ones first."""
    joins = [join for step, at in _concats(lowered) if (join := _join(lowered, step, at))]
    if not joins:
        return lowered
    return _fewest(lowered, joins, [], live_bytes(lowered))[0]


def _fewest(
    lowered: Lowered, joins: Sequence["_Join"], chosen: list["_Join"], limit: int
) -> tuple[Lowered, list["_Join"]]:
    """Remove `chosen` and as many of `joins` as the limit allows, by bisection."""
    tried = _without(lowered, [*chosen, *joins])
    if live_bytes(tried) <= limit:
        return tried, [*chosen, *joins]
    if len(joins) == 1:
        return _without(lowered, chosen), chosen
    half = len(joins) // 2
    _, chosen = _fewest(lowered, joins[:half], chosen, limit)
    return _fewest(lowered, joins[half:], chosen, limit)


@dataclass(frozen=True, slots=True)
class _Join:
    """Concatenation: its step, the slot that it writes, and the offset of each operand's slot."""

    step: int
    target: int
    parts: tuple[tuple[int, int], ...]


def _concats(lowered: Lowered) -> list[tuple[LoweredStep, int]]:
    return [(s, i) for i, s in enumerate(lowered.steps) if s.operator == "Concat"]


def _join(lowered: Lowered, step: LoweredStep, index: int) -> _Join | None:
    """Describe a concatenation of arena slots that are each an aligned interval of the result."""
    if not isinstance(step.work, PrimitiveWork):
        return None
    target = step.writes[0]
    sources = [operand for argument, operand in step.work.arguments if argument != DST]
    if target.desc is None or any(o.space is not Space.ARENA for o in (target, *sources)):
        return None
    tied = {
        slot
        for each in lowered.steps
        for sharing in each.sharing
        if sharing.kind is not AliasKind.IN_PLACE
        for slot in (sharing.input, sharing.output)
    }
    axis = _axis(target.desc, [o.desc for o in sources if o.desc is not None])
    parts: list[tuple[int, int]] = []
    start = 0
    for source in sources:
        offset = _stretch(target.desc, source.desc, axis, start)
        if offset is None or offset % ALIGNMENT or source.slot in tied:
            return None
        if source.size_bytes != lowered.slots[source.slot].size_bytes:
            return None
        parts.append((source.slot, offset))
        start += source.shape[axis]
    return _Join(index, target.slot, tuple(parts))


def _axis(target: MemoryDesc, sources: Sequence[MemoryDesc]) -> int:
    """Return the axis along which the sources make up the target; the first for one source."""
    unlike = [a for a, length in enumerate(target.dims) if sources[0].dims[a] != length]
    return unlike[0] if unlike else 0


def _stretch(whole: MemoryDesc, part: MemoryDesc | None, axis: int, start: int) -> int | None:
    """Return the byte offset of `part` at `start` of `axis` in `whole`; None if layouts differ."""
    if part is None or part.offset_bytes or whole.blocks != part.blocks:
        return None
    if start % whole.blocks[axis] or len(part.dims) != len(whole.dims):
        return None
    blocks = part.blocks
    counts = [-(-length // block) for length, block in zip(part.dims, blocks, strict=True)]
    steps = zip(counts, part.strides, whole.strides, strict=True)
    if any(count > 1 and one != other for count, one, other in steps):
        return None
    inner = 1
    for block in blocks:
        inner *= block
    return start // blocks[axis] * whole.strides[axis] * 4 if inner else None


def live_bytes(lowered: Lowered) -> int:
    """Return the lower bound of a program's arena in bytes."""
    return lower_bound(problem_of(schedule_of(lowered)).problem)


class _Homes:
    """Homes of slots: themselves, or an offset in another slot."""

    def __init__(self, sizes: Sequence[int]) -> None:
        self._sizes = sizes
        self._inside: dict[int, tuple[int, int]] = {}

    def find(self, slot: int) -> tuple[int, int]:
        """Return the slot that holds this one's bytes, and their offset."""
        offset = 0
        while slot in self._inside:
            slot, more = self._inside[slot]
            offset += more
        return slot, offset

    def move(self, join: _Join) -> bool:
        """Put the parts of a concatenation into its target, unless earlier moves conflict."""
        wanted: dict[int, int] = {}
        for slot, offset in join.parts:
            root, inside = self.find(slot)
            if wanted.setdefault(root, offset - inside) != offset - inside:
                return False
        stretches = sorted((offset, offset + self._sizes[root]) for root, offset in wanted.items())
        edges = [0, *(edge for stretch in stretches for edge in stretch), self._sizes[join.target]]
        if join.target in wanted or edges != sorted(edges):
            return False
        self._inside |= {root: (join.target, offset) for root, offset in wanted.items()}
        return True


def _without(lowered: Lowered, joins: Collection[_Join]) -> Lowered:
    """Remove these concatenations, or those of them that can be removed together."""
    homes = _Homes([slot.size_bytes for slot in lowered.slots])
    gone = {join.step for join in joins if homes.move(join)}
    moved = {
        slot: homes.find(slot) for slot in range(len(lowered.slots)) if homes.find(slot)[0] != slot
    }
    steps = tuple(
        _moved(step, moved) for index, step in enumerate(lowered.steps) if index not in gone
    )
    return lowered._replace(steps=steps)


def _moved(step: LoweredStep, homes: Mapping[int, tuple[int, int]]) -> LoweredStep:
    """Move a step's operands to their new homes; values in these are not overwritten in place."""

    def move(operand: Operand) -> Operand:
        if operand.space is not Space.ARENA or operand.slot not in homes:
            return operand
        slot, offset = homes[operand.slot]
        return operand._replace(slot=slot, offset_bytes=operand.offset_bytes + offset)

    reads = tuple(map(move, step.reads))
    used = [operand.slot for operand in dict.fromkeys(reads) if operand.space is Space.ARENA]
    sharing = (s for s in step.sharing if s.input not in homes and s.output not in homes)
    return step._replace(
        reads=reads,
        writes=tuple(map(move, step.writes)),
        work=relocated_work(step.work, move),
        sharing=tuple(s for s in sharing if used.count(s.input) == 1),
    )
