"""Assigns colours to buffers: one for each group, as an operator, that holds many bytes."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from tightship.view.module_names import module_of
from tightship.view.picture import Picture, Rectangle

HUES = 6
OTHER_SLOT = HUES
SCRATCH_SLOT = HUES + 1
_SIZE_CLASSES = ((0.1, "≥ 10 % of the arena"), (0.01, "≥ 1 %"), (0.001, "≥ 0.1 %"), (0.0, "less"))
_MODULES_MAX = 24
"""Most modules that a picture is divided into."""
_MODULE_SEPARATORS = "/."


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
    return by_group(picture, operators_of(picture), "operators")


def by_group(picture: Picture, groups: Sequence[str], what: str) -> Colouring:
    """Colour buffers by the group of each; scratch has a colour of its own.

    Args:
        picture: The picture.
        groups: A name for each rectangle.
        what: Plural of the kind of group.
    """
    weights: Counter[str] = Counter()
    for rectangle, group in zip(picture.rectangles, groups, strict=True):
        if rectangle.kind != "scratch":
            weights[group] += _area(rectangle)
    ranked = sorted(weights, key=lambda group: (-weights[group], group))
    slot_of = {group: min(rank, OTHER_SLOT) for rank, group in enumerate(ranked)}
    slots = tuple(
        SCRATCH_SLOT if r.kind == "scratch" else slot_of[group]
        for r, group in zip(picture.rectangles, groups, strict=True)
    )
    labels = {slot: group or "unknown" for group, slot in slot_of.items() if slot < HUES}
    if len(ranked) == HUES + 1:
        labels[OTHER_SLOT] = ranked[HUES] or "unknown"
    elif len(ranked) > HUES:
        labels[OTHER_SLOT] = f"{len(ranked) - HUES} other {what}"
    if SCRATCH_SLOT in slots:
        labels[SCRATCH_SLOT] = "scratch"
    return Colouring(tuple(Family(slot, labels[slot]) for slot in sorted(labels)), slots)


def operators_of(picture: Picture) -> list[str]:
    """Return the operator of the step that makes each buffer."""
    return [picture.operator_of(rectangle) for rectangle in picture.rectangles]


def modules_of(picture: Picture) -> list[str]:
    """Return the module of each buffer, at the finest level that has few enough of them.

    The module is that in the name of the step which makes the buffer, or else in its own name.
    """
    whole = [_module(picture, rectangle) for rectangle in picture.rectangles]
    parts = {module: module_parts(module) for module in set(whole)}
    depth = max((len(each) for each in parts.values()), default=0)
    while depth > 1 and len({"".join(each[:depth]) for each in parts.values()}) > _MODULES_MAX:
        depth -= 1
    return ["".join(parts[module][:depth]) for module in whole]


def _module(picture: Picture, rectangle: Rectangle) -> str:
    step = rectangle.start_step
    named = module_of(picture.steps[step].name) if 0 <= step < len(picture.steps) else ""
    return named or module_of(rectangle.name)


def module_parts(module: str) -> list[str]:
    """Split a module's name before each separator: `/encoder/layer.0` to `/encoder`, `/layer.0`.

    A number stays with the name before it, so that layers are told apart at one level.
    """
    found: list[str] = []
    for letter in module:
        if letter in _MODULE_SEPARATORS or not found:
            found.append("")
        found[-1] += letter
    joined: list[str] = []
    for part in found:
        if joined and part.lstrip(_MODULE_SEPARATORS).isdigit():
            joined[-1] += part
        else:
            joined.append(part)
    return joined


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
