"""Explains how the packed weights of two plans differ."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from tightship.difference.change import Change, ChangeKind
from tightship.difference.described import shape_and_type
from tightship.difference.matching import Matching
from tightship.difference.part_changes import with_rest
from tightship.view.module_names import module_of
from tightship.view.picture import Picture, Weight

_Key = tuple[str, int]
"""Name of a weight, and the number of its layout."""


@dataclass(frozen=True, slots=True)
class _Pair:
    """Weights of both plans that stand for each other; several if one was cut in parts."""

    old: tuple[Weight, ...]
    new: tuple[Weight, ...]
    is_copy: bool = False


def weight_changes(old: Picture, new: Picture, matching: Matching) -> list[Change]:
    """Compare packed weights, matched by name, and then by the steps that read them."""
    is_listed = bool(old.weights) == bool(new.weights)  # plans of earlier versions list none
    pairs = _pairs(old.weights, new.weights, matching) if is_listed else ()
    found = [_change(pair) for pair in pairs]
    return with_rest(old, new, "weights", [each for each in found if each.change_bytes])


def _pairs(old: Sequence[Weight], new: Sequence[Weight], matching: Matching) -> Iterator[_Pair]:
    before, after = _numbered(old), _numbered(new)
    for key in before.keys() & after.keys():
        yield _Pair((before[key],), (after[key],))
    left_old = {key: before[key] for key in before if key not in after}
    left_new = {key: after[key] for key in after if key not in before}
    names = {name for name, _ in before} & {name for name, _ in after}
    for key in [*left_old, *left_new]:
        if key[0] in names:
            yield _Pair(_one(before.get(key)), _one(after.get(key)), is_copy=True)
    yield from _by_reader(
        [each for key, each in left_old.items() if key[0] not in names],
        [each for key, each in left_new.items() if key[0] not in names],
        matching,
    )


def _one(weight: Weight | None) -> tuple[Weight, ...]:
    return () if weight is None else (weight,)


def _numbered(weights: Sequence[Weight]) -> dict[_Key, Weight]:
    """Return weights by name and number of the layout, largest first."""
    counts: Counter[str] = Counter()
    found = {}
    for weight in sorted(weights, key=lambda each: -each.size_bytes):
        found[weight.name, counts[weight.name]] = weight
        counts[weight.name] += 1
    return found


def _by_reader(old: list[Weight], new: list[Weight], matching: Matching) -> Iterator[_Pair]:
    """Pair weights of other names that steps read which stand for each other."""
    theirs: dict[int, list[Weight]] = {}
    for weight in old:
        theirs.setdefault(weight.step, []).append(weight)
    ours: dict[int, list[Weight]] = {}
    for weight in new:
        ours.setdefault(matching.steps.get(weight.step, -1), []).append(weight)
    alone = ours.pop(-1, [])
    for step, weights in ours.items():
        yield from _alike(theirs.pop(step, []), weights)
    left = [weight for weights in theirs.values() for weight in weights]
    yield from (_Pair((weight,), ()) for weight in left)
    yield from (_Pair((), (weight,)) for weight in alone)


def _alike(old: list[Weight], new: list[Weight]) -> Iterator[_Pair]:
    """Pair weights of one step: those of equal size and type, and all others together."""
    for weight in list(new):
        same = [o for o in old if (o.type, o.size_bytes) == (weight.type, weight.size_bytes)]
        if same:
            old.remove(same[0])
            new.remove(weight)
    if len(old) == len(new):
        yield from (_Pair((o,), (n,)) for o, n in zip(old, new, strict=True))
    elif old or new:
        yield _Pair(tuple(old), tuple(new))


def _change(pair: _Pair) -> Change:
    largest = max(pair.new or pair.old, key=lambda weight: weight.size_bytes)
    kind, why = _reason(pair)
    sizes = [sum(weight.size_bytes for weight in each) for each in (pair.old, pair.new)]
    return Change(
        part="weights",
        kind=kind,
        name=largest.name,
        operator="",
        module=module_of(largest.name),
        old_bytes=sizes[0],
        new_bytes=sizes[1],
        why=why,
    )


def _reason(pair: _Pair) -> tuple[ChangeKind, str]:
    now, was = _types(pair.new), _types(pair.old)
    if not pair.old or not pair.new:
        return _one_sided(pair, now or was)
    old, new = [[shape_and_type(each.type) for each in side] for side in (pair.old, pair.new)]
    if {dtype for _, dtype in old} != {dtype for _, dtype in new}:
        return "type", f"{now} instead of {was}"
    if [shape for shape, _ in old] != [shape for shape, _ in new]:
        return "shape", f"{now} instead of {was}"
    return "layout", f"{now} in another layout"


def _one_sided(pair: _Pair, described: str) -> tuple[ChangeKind, str]:
    if pair.new:
        if pair.is_copy:
            return "packed twice", f"{described} packed in a further layout"
        return "new", f"{described}, only in the new plan"
    if pair.is_copy:
        return "packed once", f"{described} packed in a layout less"
    return "gone", f"{described}, only in the old plan"


def _types(weights: tuple[Weight, ...]) -> str:
    return " with ".join(weight.type for weight in weights)
