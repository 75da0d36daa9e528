"""Explains how inputs and outputs, and the runtime, differ between two plans."""

from collections.abc import Iterator, Mapping

from tightship.difference.change import Change, ChangeKind, part_bytes
from tightship.difference.described import described_bytes, shape_and_type
from tightship.view.picture import Picture


def io_changes(old: Picture, new: Picture) -> list[Change]:
    """Compare inputs and outputs by name."""
    found = [
        *_described(old.inputs, new.inputs, "input"),
        *_described(old.outputs, new.outputs, "output"),
    ]
    return with_rest(old, new, "inputs and outputs", found)


def _described(old: Mapping[str, str], new: Mapping[str, str], what: str) -> Iterator[Change]:
    for name in dict.fromkeys([*new, *old]):
        before, after = old.get(name, ""), new.get(name, "")
        sizes = described_bytes(before), described_bytes(after)
        if sizes[0] != sizes[1]:
            kind, why = _described_reason(before, after, what)
            yield Change("inputs and outputs", kind, name, "", "", *sizes, why)


def _described_reason(before: str, after: str, what: str) -> tuple[ChangeKind, str]:
    if not before:
        return "new", f"{what} of the new plan alone"
    if not after:
        return "gone", f"{what} of the old plan alone"
    is_wider = shape_and_type(before)[1] != shape_and_type(after)[1]
    return "type" if is_wider else "shape", f"{what}, {after} instead of {before}"


def runtime_changes(old: Picture, new: Picture) -> list[Change]:
    """Compare libraries, generated code and program, as far as steps and keys explain them."""
    sizes = part_bytes(old, "runtime"), part_bytes(new, "runtime")
    if sizes[0] == sizes[1]:
        return []
    keys = other_keys(old, new)
    facts = [
        f"{name} {new.key.get(name, 'unset')} instead of {old.key.get(name, 'unset')}"
        for name in keys
    ]
    if len(old.steps) != len(new.steps):
        facts.append(f"{len(new.steps)} steps instead of {len(old.steps)}")
    kernels = [[(step.operator, step.kernel) for step in each.steps] for each in (old, new)]
    if not facts and kernels[0] == kernels[1]:
        facts.append("what loading takes beside the arena")  # less where the arena has room for it
    why = ", ".join(facts) or "other nodes and kernels"
    return [Change("runtime", "kernels", keys[0] if keys else "", "", "", *sizes, why)]


def other_keys(old: Picture, new: Picture) -> list[str]:
    """Return what decides on kernels and differs: threads, instruction set, library."""
    names = ("threads", "cpu_isa", "onednn", "kernels")
    return [name for name in names if old.key.get(name) != new.key.get(name)]


def with_rest(old: Picture, new: Picture, part: str, found: list[Change]) -> list[Change]:
    """Add a change for what the others do not explain, so that they sum to the part's."""
    rest = part_bytes(new, part) - part_bytes(old, part) - sum(c.change_bytes for c in found)
    if not rest:
        return found
    sizes = (0, rest) if rest > 0 else (-rest, 0)
    return [*found, Change(part, "rounding", "", "", "", *sizes, "whole cache lines")]
