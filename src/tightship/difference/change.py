"""Defines what a comparison of two plans finds: changes, their cause, and their sums."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Literal

from tightship.brief import brief
from tightship.view.picture import Picture

ChangeKind = Literal[
    "shape",
    "type",
    "layout",
    "fusion lost",
    "fused",
    "copied",
    "written in place",
    "lives longer",
    "lives shorter",
    "own bytes",
    "shared bytes",
    "new",
    "gone",
    "scratch",
    "packed twice",
    "packed once",
    "kernels",
    "elsewhere",
    "holes",
    "rounding",
]
"""Reasons that bytes differ. `elsewhere`: the other plan has its peak at another step, and room at
this one; `holes`: bytes of the arena that no tensor has; `rounding`: to whole cache lines."""

PARTS = ("weights", "arena", "inputs and outputs", "runtime")


@brief
@dataclass(frozen=True, slots=True)
class Change:
    """Bytes that differ between two plans, and why.

    Attributes:
        part: Part of the peak: `weights`, `arena`, `inputs and outputs` or `runtime`.
        kind: Why they differ.
        name: Tensor, weight or input; empty for what concerns none alone.
        operator: Operators of the step that makes the tensor; empty for weights.
        module: Module of that step or weight by its name, as `/encoder/layer.0`.
        old_bytes: Bytes that count at the peak of the old plan.
        new_bytes: Bytes that count at the peak of the new plan.
        why: A clause for people, as `float32 instead of float16`.
    """

    part: str
    kind: ChangeKind
    name: str
    operator: str
    module: str
    old_bytes: int
    new_bytes: int
    why: str

    @property
    def change_bytes(self) -> int:
        """Bytes that the new plan has more; negative if it has less."""
        return self.new_bytes - self.old_bytes


@brief
@dataclass(frozen=True, slots=True)
class Cause:
    """Reason that moved a peak most, with the bytes of its changes.

    Attributes:
        kind: Why the bytes differ.
        name: Tensor, weight or input that the reason is about.
        text: A sentence for people.
        change_bytes: Bytes of its changes.
    """

    kind: ChangeKind
    name: str
    text: str
    change_bytes: int


@dataclass(frozen=True, slots=True)
class PlanDifference:
    """Two plans of a model side by side: the changes sum to the difference of the peaks exactly.

    Attributes:
        old: The plan before.
        new: The plan after.
        step_old: Step of the old plan that is compared, -1 if its program has none.
        step_new: Step of the new plan that is compared, -1 if its program has none.
        changes: What differs at the peak, the largest first.
        cause: What moved the peak most; None if nothing differs.
    """

    old: Picture
    new: Picture
    step_old: int
    step_new: int
    changes: tuple[Change, ...]
    cause: Cause | None

    @property
    def change_bytes(self) -> int:
        """Bytes that the new peak is larger by; negative if it is smaller."""
        return self.new.peak_bytes - self.old.peak_bytes

    @property
    def parts(self) -> dict[str, tuple[int, int]]:
        """Bytes of each part, old and new."""
        return {part: (part_bytes(self.old, part), part_bytes(self.new, part)) for part in PARTS}

    @property
    def keys(self) -> dict[str, tuple[str, str]]:
        """Facts that the plans depend on and differ in, such as threads: old and new."""
        names = dict.fromkeys([*self.old.key, *self.new.key])
        pairs = {name: (self.old.key.get(name, ""), self.new.key.get(name, "")) for name in names}
        return {name: pair for name, pair in pairs.items() if pair[0] != pair[1]}

    def by_module(self) -> dict[str, int]:
        """Sum the changes of tensors and weights by module, the largest first."""
        return _summed(self.changes, lambda change: change.module)

    def by_operator(self) -> dict[str, int]:
        """Sum the changes of tensors by operator, the largest first."""
        return _summed(self.changes, lambda change: change.operator)

    def table(self) -> str:
        """Tabulate the parts, and what moved the peak, in at most 100 columns."""
        from tightship.difference.tables import text_of

        return text_of(self)

    def markdown(self) -> str:
        """Write the tables as Markdown, as for a comment on a pull request."""
        from tightship.difference.tables import markdown_of

        return markdown_of(self)

    def to_json(self) -> dict[str, object]:
        """Convert to JSON values; amounts are integers named `*_bytes`."""
        from tightship.difference.as_json import json_of

        return json_of(self)

    def __repr__(self) -> str:
        names = f"{self.old.title} to {self.new.title}"
        return f"<tightship.PlanDifference {names}: {self.change_bytes:+} bytes>"

    def _repr_html_(self) -> str:
        from tightship.difference.tables import html_of

        return html_of(self)


def part_bytes(picture: Picture, part: str) -> int:
    """Return the bytes of a part of a plan; 0 if it has no such part."""
    return picture.arena_bytes if part == "arena" else picture.parts.get(part, 0)


def _summed(changes: Iterable[Change], key: Callable[[Change], str]) -> dict[str, int]:
    sums: dict[str, int] = {}
    for change in changes:
        if key(change):
            sums[key(change)] = sums.get(key(change), 0) + change.change_bytes
    return _ordered(sums)


def _ordered(sums: Mapping[str, int]) -> dict[str, int]:
    return dict(sorted(sums.items(), key=lambda item: (-abs(item[1]), item[0])))
