"""Matches the steps and tensors of two plans: by name, or by structure where that explains more."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from itertools import pairwise

from tightship.view.picture import Picture, Rectangle


@dataclass(frozen=True, slots=True)
class Matching:
    """Pairs of two plans, as indices.

    Attributes:
        steps: Step of the old plan, by step of the new one.
        tensors: Tensor of the old plan, by tensor of the new one.
    """

    steps: dict[int, int]
    tensors: dict[int, int]

    def reversed(self) -> "Matching":
        """Return the pairs by the old plan's indices."""
        return Matching(_turned(self.steps), _turned(self.tensors))


def match(old: Picture, new: Picture) -> Matching:
    """Match two plans.

    Names decide unless pairs of equal structure are more: exporters number tensors, and a node more
    then gives each name behind it to another tensor.
    """
    named = _between(old, new, _steps_by_name(old, new))
    plain = _between(old, new, {})
    by_name = _alike(old, new, named) >= _alike(old, new, plain)
    steps = named if by_name else plain
    return Matching(steps, _tensors(old, new, steps, by_name=by_name))


def parts_of(operator: str) -> list[str]:
    """Return the operators that a step computes: several if they were fused."""
    return operator.split("+")


def _turned(pairs: dict[int, int]) -> dict[int, int]:
    return {old: new for new, old in pairs.items()}


def _steps_by_name(old: Picture, new: Picture) -> dict[int, int]:
    """Match steps of equal names that have an operator in common, in one order."""
    counts = Counter(step.name for step in old.steps), Counter(step.name for step in new.steps)
    places = {step.name: i for i, step in enumerate(old.steps) if counts[0][step.name] == 1}
    pairs = [
        (index, places[step.name])
        for index, step in enumerate(new.steps)
        if step.name in places
        and counts[1][step.name] == 1
        and set(parts_of(step.operator)) & set(parts_of(old.steps[places[step.name]].operator))
    ]
    return dict(pairs)


def _between(old: Picture, new: Picture, fixed: dict[int, int]) -> dict[int, int]:
    """Match further steps by operators, in order, between those that are matched in order."""
    anchors = [(-1, -1), *_in_order(fixed), (len(new.steps), len(old.steps))]
    found, taken = dict(fixed), set(fixed.values())
    for (n_from, o_from), (n_to, o_to) in pairwise(anchors):
        ours = [i for i in range(n_from + 1, n_to) if i not in found]
        theirs = [i for i in range(o_from + 1, o_to) if i not in taken]
        for n, o in _aligned([_sign(new, i) for i in ours], [_sign(old, i) for i in theirs]):
            found[ours[n]] = theirs[o]
        ours = [i for i in ours if i not in found]
        theirs = [i for i in theirs if i not in found.values()]
        for n, o in _aligned([_first(new, i) for i in ours], [_first(old, i) for i in theirs]):
            found[ours[n]] = theirs[o]
    return found


def _in_order(pairs: dict[int, int]) -> list[tuple[int, int]]:
    """Return pairs that rise in both plans: those of a reordered step are left out."""
    kept: list[tuple[int, int]] = []
    for pair in sorted(pairs.items()):
        if not kept or pair[1] > kept[-1][1]:
            kept.append(pair)
    return kept


def _sign(picture: Picture, step: int) -> str:
    return picture.steps[step].operator


def _first(picture: Picture, step: int) -> str:
    return parts_of(picture.steps[step].operator)[0]


def _aligned(new: Sequence[str], old: Sequence[str]) -> list[tuple[int, int]]:
    if not new or not old:
        return []
    blocks = SequenceMatcher(None, new, old, autojunk=False).get_matching_blocks()
    return [(b.a + i, b.b + i) for b in blocks for i in range(b.size)]


def _alike(old: Picture, new: Picture, pairs: dict[int, int]) -> int:
    """Count pairs of equal operators whose outputs have equal types."""
    types = _types(old), _types(new)
    return sum(
        old.steps[o].operator == new.steps[n].operator and types[0].get(o) == types[1].get(n)
        for n, o in pairs.items()
    )


def _types(picture: Picture) -> dict[int, list[str]]:
    found: dict[int, list[str]] = {}
    for rectangle in picture.rectangles:
        if rectangle.kind != "scratch":
            found.setdefault(rectangle.start_step, []).append(rectangle.type)
    return found


def _tensors(old: Picture, new: Picture, steps: dict[int, int], *, by_name: bool) -> dict[int, int]:
    """Match tensors: by name where names count, and else by the steps that make them."""
    found: dict[int, int] = {}
    taken: set[int] = set()

    def pair(n: int, o: int) -> None:
        if n not in found and o not in taken:
            found[n] = o
            taken.add(o)

    if by_name:
        places = {(r.kind, r.name): i for i, r in enumerate(old.rectangles)}
        for index, rectangle in enumerate(new.rectangles):
            other = places.get((rectangle.kind, rectangle.name))
            if other is not None and rectangle.kind != "scratch":
                pair(index, other)
    made = _made(old.rectangles), _made(new.rectangles)
    for n, o in steps.items():
        is_same = old.steps[o].operator == new.steps[n].operator
        for kind in ("activation", "scratch", "buffer"):
            ours, theirs = made[1].get((n, kind), []), made[0].get((o, kind), [])
            if len(ours) == len(theirs) and (is_same or kind == "scratch"):
                for one, other in zip(ours, theirs, strict=True):
                    pair(one, other)
    return found


def _made(rectangles: Sequence[Rectangle]) -> dict[tuple[int, str], list[int]]:
    found: dict[tuple[int, str], list[int]] = {}
    for index, rectangle in enumerate(rectangles):
        found.setdefault((rectangle.start_step, rectangle.kind), []).append(index)
    return found
