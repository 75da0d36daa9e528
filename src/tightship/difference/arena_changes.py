"""Explains how the live bytes of an arena differ between two plans at one step of the program."""

from collections.abc import Iterator
from dataclasses import dataclass

from tightship.difference.change import Change, ChangeKind
from tightship.difference.described import shape_and_type
from tightship.difference.matching import Matching, parts_of
from tightship.difference.occupancy import live_bytes, occupancy
from tightship.graph.operators import Category, find
from tightship.view.module_names import module_of
from tightship.view.picture import Picture, Rectangle, Step

_MOVING = frozenset(("Copy", "Expand", "Pad", "Reorder"))
"""Further operators that only move elements, and need not run where these are written in place."""
_KINDS = (Category.RESHAPING, Category.CUTTING, Category.JOINING)


@dataclass(frozen=True, slots=True)
class Steps:
    """The step that is compared, of each plan; -1 for a plan without steps."""

    old: int
    new: int


@dataclass(frozen=True, slots=True)
class _Pair:
    """Two plans, and how they match."""

    old: Picture
    new: Picture
    matching: Matching
    at: Steps


def arena_changes(old: Picture, new: Picture, matching: Matching) -> tuple[Steps, list[Change]]:
    """Compare the arenas at the larger one's peak, and at the step of the other that matches it.

    Returns:
        The steps, and changes whose sum is the difference of the two arenas.
    """
    at = _steps(old, new, matching)
    pair = _Pair(old, new, matching, at)
    found = [*_tensors(pair), *_rest(pair)]
    return at, [change for change in found if change.change_bytes]


def _steps(old: Picture, new: Picture, matching: Matching) -> Steps:
    if not (old.steps and new.steps):
        return Steps(old.peak_step() if old.steps else -1, new.peak_step() if new.steps else -1)
    if new.arena_bytes >= old.arena_bytes:
        peak = new.peak_step()
        return Steps(_counterpart(peak, matching.steps), peak)
    peak = old.peak_step()
    return Steps(peak, _counterpart(peak, matching.reversed().steps))


def _counterpart(step: int, steps: dict[int, int]) -> int:
    """Return the step that matches the given one, or the nearest before it that has a match."""
    before = [each for each in steps if each <= step]
    if before:
        return steps[max(before)]
    return min(steps.values(), default=0)


def _tensors(pair: _Pair) -> Iterator[Change]:
    """Yield a change for each tensor whose bytes at the compared step differ."""
    old = occupancy(pair.old, pair.at.old) if pair.at.old >= 0 else {}
    new = occupancy(pair.new, pair.at.new) if pair.at.new >= 0 else {}
    tensors = pair.matching.tensors
    seen: set[int] = set()
    for index, size in new.items():
        other = tensors.get(index)
        before = old.get(other, 0) if other is not None else 0
        if other is not None:
            seen.add(other)
        if size != before:
            yield _changed(pair, other, index, before, size)
    turned = pair.matching.reversed().tensors
    for index, size in old.items():
        if index not in seen and size:
            yield _changed(pair, index, turned.get(index), size, 0)


def _changed(
    pair: _Pair, old: int | None, new: int | None, old_bytes: int, new_bytes: int
) -> Change:
    if new is not None:
        picture, index = pair.new, new
    else:
        assert old is not None
        picture, index = pair.old, old
    tensor = picture.rectangles[index]
    kind, why = _reason(pair, old, new, grows=new_bytes > old_bytes)
    step = picture.steps[tensor.start_step]
    return Change(
        part="arena",
        kind=kind,
        name=tensor.name,
        operator=step.operator,
        module=module_of(step.name),
        old_bytes=old_bytes,
        new_bytes=new_bytes,
        why=why,
    )


def _reason(
    pair: _Pair, old: int | None, new: int | None, *, grows: bool
) -> tuple[ChangeKind, str]:
    if old is None and new is not None:
        return _appeared(pair.old, pair.new, pair.matching, pair.new.rectangles[new], is_new=True)
    if new is None:
        assert old is not None
        turned = pair.matching.reversed()
        return _appeared(pair.new, pair.old, turned, pair.old.rectangles[old], is_new=False)
    assert old is not None
    before, after = pair.old.rectangles[old], pair.new.rectangles[new]
    if after.kind == "scratch":
        return "scratch", _kernels(pair.old, before, pair.new, after)
    if before.size_bytes != after.size_bytes:
        return _resized(before, after)
    if before.is_live(pair.at.old) and after.is_live(pair.at.new):
        return _shared(before, after, grows=grows)
    return _lifetime(pair, before, after, grows=grows)


def _resized(before: Rectangle, after: Rectangle) -> tuple[ChangeKind, str]:
    (old_shape, old_type), (new_shape, new_type) = map(shape_and_type, (before.type, after.type))
    if old_type != new_type:
        return "type", f"{new_type} instead of {old_type}"
    if old_shape != new_shape:
        return "shape", f"{new_shape} instead of {old_shape}"
    return "layout", f"{after.type} in another layout"


def _shared(before: Rectangle, after: Rectangle, *, grows: bool) -> tuple[ChangeKind, str]:
    if grows:
        host = f"`{before.shares_with}`" if before.shares_with else "another tensor"
        return "own bytes", f"was in the bytes of {host}"
    host = f"`{after.shares_with}`" if after.shares_with else "another tensor"
    return "shared bytes", f"is in the bytes of {host}"


def _lifetime(
    pair: _Pair, before: Rectangle, after: Rectangle, *, grows: bool
) -> tuple[ChangeKind, str]:
    longer: ChangeKind = "lives longer" if grows else "lives shorter"
    is_late = before.stop_step <= pair.at.old if grows else after.stop_step <= pair.at.new
    edge = "stop" if is_late else "start"
    new_step, old_step = _edge(after, edge), _edge(before, edge)
    now, was = pair.new.steps[new_step], pair.old.steps[old_step]
    compared = pair.new.steps[pair.at.new].name
    if pair.matching.steps.get(new_step) == old_step:
        when = "after" if is_late == grows else "before"
        return longer, f"`{now.name}` now runs {when} `{compared}`"
    verb = "read until" if is_late else "made by"
    alone = "" if new_step in pair.matching.steps else ", a step of the new plan alone,"
    return longer, f"{verb} `{now.name}`{alone} instead of `{was.name}`"


def _edge(tensor: Rectangle, edge: str) -> int:
    """Return the step that makes a tensor, or the last one that reads it."""
    return tensor.start_step if edge == "start" else tensor.stop_step - 1


def _appeared(
    other: Picture, picture: Picture, matching: Matching, tensor: Rectangle, *, is_new: bool
) -> tuple[ChangeKind, str]:
    """Explain a tensor that only `picture` has; `matching` is from its indices to the other's."""
    if tensor.kind == "scratch":
        kernel = picture.steps[tensor.start_step].kernel
        return "scratch", f"of {kernel}" if is_new else f"was of {kernel}"
    fused = _fused(other, picture, matching, tensor)
    if fused is not None:
        operators = f"{fused.operator} {_shown(fused)}"
        if is_new:
            return "fusion lost", f"{operators} was one step without it"
        return "fused", f"{operators} is one step without it"
    moving = _moving(picture, matching, tensor)
    if moving is not None:
        text = f"{moving.operator} {_shown(moving)} copies"
        return ("copied", f"{text} it") if is_new else ("written in place", f"{text} it no more")
    return ("new", "only the new plan has it") if is_new else ("gone", "only the old plan has it")


def _fused(other: Picture, picture: Picture, matching: Matching, tensor: Rectangle) -> Step | None:
    """Find a step of the other plan that computes with one kernel what makes and reads a tensor."""
    steps = matching.steps
    made, read = tensor.start_step, tensor.stop_step - 1
    near = [steps[each] for each in (made, read) if each in steps]
    near += [s for s in _unmatched_between(other, steps, made, read) if s not in near]
    alone = {
        part
        for index in _gap(len(picture.steps), set(steps), made, read)
        for part in parts_of(picture.steps[index].operator)
    }
    turned = {o: n for n, o in steps.items()}
    for index in near:
        found = other.steps[index]
        if index in turned:
            own = parts_of(picture.steps[turned[index]].operator)
            missing = {part for part in parts_of(found.operator) if part not in own}
            if missing & alone:
                return found
        elif _replaces(picture, steps, made, read, other, index):
            return found
    return None


def _replaces(
    picture: Picture, steps: dict[int, int], made: int, read: int, other: Picture, index: int
) -> bool:
    """Whether several steps stand for a single unmatched one of the other plan."""
    ours = _gap(len(picture.steps), set(steps), made, read)
    theirs = _unmatched_between(other, steps, made, read)
    return index in theirs and len(ours) > len(theirs)


def _unmatched_between(other: Picture, steps: dict[int, int], first: int, last: int) -> list[int]:
    """Return unmatched steps of the other plan between the matches around a range of steps."""
    below = [o for n, o in steps.items() if n < first]
    above = [o for n, o in steps.items() if n > last]
    low, high = max(below, default=-1), min(above, default=len(other.steps))
    taken = set(steps.values())
    return [step for step in range(low + 1, high) if step not in taken]


def _gap(count: int, matched: set[int], first: int, last: int) -> list[int]:
    """Return the unmatched steps in and next to a range."""
    while first > 0 and first - 1 not in matched:
        first -= 1
    while last < count - 1 and last + 1 not in matched:
        last += 1
    return [step for step in range(first, last + 1) if step not in matched]


def _moving(picture: Picture, matching: Matching, tensor: Rectangle) -> Step | None:
    """Find an unmatched step that only moves a tensor, or makes one by moving others."""
    for index in (tensor.stop_step - 1, tensor.start_step):
        step = picture.steps[index]
        if index not in matching.steps and any(map(_moves, parts_of(step.operator))):
            return step
    return None


def _moves(operator: str) -> bool:
    return operator in _MOVING or find(operator).category in _KINDS


def _kernels(old: Picture, before: Rectangle, new: Picture, after: Rectangle) -> str:
    was, now = old.steps[before.start_step].kernel, new.steps[after.start_step].kernel
    return f"of {now}" if was == now else f"of {now} instead of {was}"


def _shown(step: Step) -> str:
    return f"`{step.name}`"


def _rest(pair: _Pair) -> Iterator[Change]:
    """Yield what no tensor at the compared step explains."""
    old_step, new_step = pair.at.old, pair.at.new
    for name, kind, why, (old, new) in (
        ("", "elsewhere", "the other plan has its peak at another step",
         (_room(pair.old, old_step), _room(pair.new, new_step))),
        ("", "holes", "bytes that no tensor has at the peak", (_holes(pair.old), _holes(pair.new))),
        ("", "rounding", "bytes kept between uses of a buffer, and alignment",
         (_unseen(pair.old, old_step), _unseen(pair.new, new_step))),
    ):  # fmt: skip
        yield Change("arena", kind, name, "", "", old, new, why)  # type: ignore[arg-type]


def _peak(picture: Picture) -> int:
    return max((step.live_bytes for step in picture.steps), default=0)


def _room(picture: Picture, step: int) -> int:
    return _peak(picture) - live_bytes(picture, step) if step >= 0 else 0


def _holes(picture: Picture) -> int:
    return picture.arena_bytes - _peak(picture)


def _unseen(picture: Picture, step: int) -> int:
    if step < 0:
        return 0
    return live_bytes(picture, step) - sum(occupancy(picture, step).values())
