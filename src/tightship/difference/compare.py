"""Compares two memory plans, and names what moved the peak."""

from tightship.difference.arena_changes import arena_changes
from tightship.difference.change import Cause, Change, ChangeKind, PlanDifference
from tightship.difference.described import shape_and_type
from tightship.difference.matching import match
from tightship.difference.part_changes import (
    io_changes,
    other_keys,
    runtime_changes,
)
from tightship.difference.plans import AnyPlan, picture_of
from tightship.difference.weight_changes import weight_changes
from tightship.view.picture import Picture

_OF_KERNELS = ("kernels", "scratch", "layout")
"""Kinds that follow from other threads or instructions."""


def compare_plans(old: AnyPlan, new: AnyPlan) -> PlanDifference:
    """Compare two plans: which tensors, steps and weights moved the peak, and why.

    Tensors and steps are matched by name, and then by structure. The arenas are compared at the
    peak of the larger one, and at the step of the other that matches it.

    Args:
        old: Plan before: one of `tightship.plan`, of a loaded model, or of `read_plan`.
        new: Plan after.

    Returns:
        Changes that sum to the difference of the two peaks, and their main cause.
    """
    before, after = picture_of(old), picture_of(new)
    matching = match(before, after)
    at, arena = arena_changes(before, after, matching)
    changes = [
        *weight_changes(before, after, matching),
        *arena,
        *io_changes(before, after),
        *runtime_changes(before, after),
    ]
    changes.sort(key=lambda change: (-abs(change.change_bytes), change.part, change.name))
    cause = _cause(before, after, changes)
    return PlanDifference(before, after, at.old, at.new, tuple(changes), cause)


def _cause(old: Picture, new: Picture, changes: list[Change]) -> Cause | None:
    """Return what moved the peak most: the changes of one reason with the largest sum.

    Changes that follow from other shapes or types of the inputs have one reason, the inputs'.
    """
    if not changes:
        return None
    sign = -1 if new.peak_bytes < old.peak_bytes else 1
    reasons: dict[tuple[str, str], list[Change]] = {}
    for change in changes:
        reasons.setdefault(_reason(old, new, change), []).append(change)

    def weight(reason: tuple[str, str]) -> tuple[bool, int]:
        total = sign * sum(change.change_bytes for change in reasons[reason])
        return bool(reasons[reason][0].name) and total > 0, total

    best = max(reasons, key=weight)
    found = reasons[best]
    total = sum(change.change_bytes for change in found)
    if best[0] == "input":
        return _of_input(old, new, best[1], found, total)
    first = found[0]
    if best[0] == "key":
        before, after = old.key.get(best[1], "unset"), new.key.get(best[1], "unset")
        return Cause(
            "kernels", best[1], f"Planned for {best[1]} {after} instead of {before}", total
        )
    return Cause(first.kind, first.name, _sentence(first, len(found)), total)


def _reason(old: Picture, new: Picture, change: Change) -> tuple[str, str]:
    """Return what stands for the reason of a change, the same for all that follow from it."""
    if change.kind in ("shape", "type") and change.part != "weights":
        name = _other_input(old, new, change.kind)
        if name:
            return "input", change.kind
    if change.kind in _OF_KERNELS and (keys := other_keys(old, new)):
        return "key", keys[0]
    if change.kind in ("type", "layout", "packed twice", "packed once") and not change.operator:
        return change.part, f"{change.kind} {change.why}"
    if change.kind in ("shape", "type", "layout"):
        return "tensors", change.kind
    if change.kind in ("fusion lost", "fused", "copied", "written in place"):
        return change.kind, change.why
    return f"{change.part} {change.kind}", change.name


def _other_input(old: Picture, new: Picture, kind: str) -> str:
    """Return the first input of both plans whose shape or type differs; empty if there is none."""
    part = 0 if kind == "shape" else 1
    for name in new.inputs:
        if name in old.inputs:
            before, after = shape_and_type(old.inputs[name]), shape_and_type(new.inputs[name])
            if before[part] != after[part]:
                return name
    return ""


def _of_input(old: Picture, new: Picture, kind: str, found: list[Change], total: int) -> Cause:
    name = _other_input(old, new, kind)
    text = f"Input `{name}` is {new.inputs[name]} instead of {old.inputs[name]}"
    return Cause(_kind(kind), name, text + _others(len(found)), total)


def _kind(kind: str) -> ChangeKind:
    return "shape" if kind == "shape" else "type"


def _others(count: int) -> str:
    return f", and with it {count - 1} tensor{'s' * (count > 2)}" if count > 1 else ""


def _sentence(change: Change, count: int) -> str:
    """Say what happened to a tensor or weight, and to how many like it."""
    what = "Weight" if change.part == "weights" else (change.operator or change.part).capitalize()
    subject = f"{what} `{change.name}`" if change.name else change.part.capitalize()
    if change.part == "arena" and change.name:
        subject = f"`{change.name}` of {change.operator}"
    more = f" (and {count - 1} more)" if count > 1 else ""
    return f"{subject}: {change.kind}, {change.why}{more}"
