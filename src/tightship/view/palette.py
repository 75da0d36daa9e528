"""Assigns colours to buffers: one for each operator that holds many bytes."""

from collections import Counter
from dataclasses import dataclass

from tightship.view.picture import Picture, Rectangle

HUES = 6
OTHER_SLOT = HUES
SCRATCH_SLOT = HUES + 1
_SIZE_CLASSES = ((0.1, "≥ 10 % of the arena"), (0.01, "≥ 1 %"), (0.001, "≥ 0.1 %"), (0.0, "less"))


@dataclass(frozen=True, slots=True)
class Family:
    """Buffers of one colour; `slot` counts hues first, then `OTHER_SLOT` and `SCRATCH_SLOT`."""

    slot: int
    label: str


@dataclass(frozen=True, slots=True)
class Colouring:
    """The families of a picture, in the order of a legend, and each rectangle's slot."""

    families: tuple[Family, ...]
    slots: tuple[int, ...]


def colouring(picture: Picture) -> Colouring:
    """Colour buffers by operator; operators with the most bytes times steps come first.

    Operators after the sixth share a neutral colour, and scratch has its own. A plan without
    operators is coloured by size.
    """
    if not picture.steps:
        return _by_size(picture)
    weights: Counter[str] = Counter()
    for rectangle in picture.rectangles:
        if rectangle.kind != "scratch":
            weights[picture.operator_of(rectangle)] += _area(rectangle)
    ranked = sorted(weights, key=lambda operator: (-weights[operator], operator))
    slot_of = {operator: min(rank, OTHER_SLOT) for rank, operator in enumerate(ranked)}
    slots = tuple(
        SCRATCH_SLOT if r.kind == "scratch" else slot_of[picture.operator_of(r)]
        for r in picture.rectangles
    )
    labels = {slot: operator or "unknown" for operator, slot in slot_of.items() if slot < HUES}
    if len(ranked) == HUES + 1:
        labels[OTHER_SLOT] = ranked[HUES] or "unknown"
    elif len(ranked) > HUES:
        labels[OTHER_SLOT] = f"{len(ranked) - HUES} other operators"
    if SCRATCH_SLOT in slots:
        labels[SCRATCH_SLOT] = "scratch"
    return Colouring(tuple(Family(slot, labels[slot]) for slot in sorted(labels)), slots)


def _by_size(picture: Picture) -> Colouring:
    slots = tuple(
        next(
            slot
            for slot, (share, _) in enumerate(_SIZE_CLASSES)
            if rectangle.size_bytes >= share * picture.arena_bytes
        )
        for rectangle in picture.rectangles
    )
    used = sorted(set(slots))
    return Colouring(tuple(Family(slot, _SIZE_CLASSES[slot][1]) for slot in used), slots)


def _area(rectangle: Rectangle) -> int:
    return rectangle.size_bytes * max(1, rectangle.stop_step - rectangle.start_step)
