"""Defines the data that views draw: the facts of one memory plan, independent of its source."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from itertools import pairwise

from tightship.brief import brief


@brief
@dataclass(frozen=True, slots=True)
class Rectangle:
    """A buffer in a picture: bytes `[offset, offset + size)` in steps `[start, stop)`.

    `shares_with` names the value whose bytes the buffer took over; None for fresh bytes. `type` is
    the shape and type of its value, where they are known.
    """

    name: str
    size_bytes: int
    offset_bytes: int
    start_step: int
    stop_step: int
    kind: str = "activation"
    shares_with: str | None = None
    type: str = ""

    def is_live(self, step: int) -> bool:
        """Whether the buffer holds its bytes while `step` runs."""
        return self.start_step <= step < self.stop_step


@brief
@dataclass(frozen=True, slots=True)
class Step:
    """One kernel call; `dynamic_reason` explains why it allocates outside the plan, if it does.

    `reads` and `writes` name values, without constants; both are empty where they are unknown.
    """

    name: str
    operator: str
    kernel: str
    live_bytes: int
    dynamic_reason: str | None = None
    reads: tuple[str, ...] = ()
    writes: tuple[str, ...] = ()


@brief
@dataclass(frozen=True, slots=True)
class Weight:
    """A packed constant of a picture, with its shape and type, and the first step that reads it."""

    name: str
    size_bytes: int
    type: str = ""
    step: int = -1


@brief
@dataclass(frozen=True, slots=True)
class Picture:
    """One memory plan as its views need it.

    Attributes:
        title: Name of the plan, such as its model's.
        arena_bytes: Height of the picture: every rectangle lies below it.
        lower_bound_bytes: A number of bytes below which no plan has its arena.
        rectangles: The buffers.
        steps: Kernel calls in order; empty for a plan of buffers alone, whose live bytes are the
            sum of the live rectangles.
        parts: Parts of the total besides `arena`, in bytes; empty if only the arena is known.
        strategy: Name of the strategy that made the plan.
        strategies: Arena bytes by planning strategy, for comparison.
        key: Facts that the plan depends on, such as threads, by name.
        inputs: Types of the inputs by name.
        outputs: Types of the outputs by name.
        weights: Packed constants, whose sizes the part `weights` sums in whole cache lines.
        apart: Bytes of loading a model that another process plans, by what they are of; empty for
            one that the process plans itself.
        views: Values without a rectangle of their own, by name, with the value whose bytes they
            show.
    """

    title: str
    arena_bytes: int
    lower_bound_bytes: int
    rectangles: tuple[Rectangle, ...]
    steps: tuple[Step, ...] = ()
    parts: Mapping[str, int] = field(default_factory=dict)
    strategy: str = ""
    strategies: Mapping[str, int] = field(default_factory=dict)
    key: Mapping[str, str] = field(default_factory=dict)
    inputs: Mapping[str, str] = field(default_factory=dict)
    outputs: Mapping[str, str] = field(default_factory=dict)
    weights: tuple[Weight, ...] = ()
    views: Mapping[str, str] = field(default_factory=dict)
    apart: Mapping[str, int] = field(default_factory=dict)

    @property
    def peak_bytes(self) -> int:
        """Bytes of the arena and of all parts."""
        return self.arena_bytes + sum(self.parts.values())

    @property
    def is_exact(self) -> bool:
        """Whether no step allocates outside the plan."""
        return not self.dynamic_steps

    @property
    def dynamic_steps(self) -> tuple[tuple[int, Step], ...]:
        """Steps that allocate outside the plan, with their indices."""
        return tuple((i, step) for i, step in enumerate(self.steps) if step.dynamic_reason)

    @property
    def step_count(self) -> int:
        """Width of the picture: every lifetime ends at or before it."""
        last = max((r.stop_step for r in self.rectangles), default=0)
        return max(last, len(self.steps))

    @property
    def gap(self) -> float:
        """Relative distance of the arena to its lower bound; 0 for an empty arena."""
        return self.arena_bytes / self.lower_bound_bytes - 1 if self.lower_bound_bytes else 0.0

    def operator_of(self, rectangle: Rectangle) -> str:
        """Return the operator of the step that writes the buffer first; empty if it is unknown."""
        step = rectangle.start_step
        return self.steps[step].operator if 0 <= step < len(self.steps) else ""

    def load(self) -> list[tuple[int, int]]:
        """Return live bytes as (first step, bytes) at each change, in increasing order of steps."""
        if self.steps:
            loads = [(i, step.live_bytes) for i, step in enumerate(self.steps)]
        else:
            loads = _sum_of_live(self.rectangles)
        return loads[:1] + [b for a, b in pairwise(loads) if a[1] != b[1]]

    def peak_step(self) -> int:
        """Return the first step with the largest live bytes; 0 for an empty plan."""
        # The negated step makes the first of several equal peaks win.
        return max(self.load(), key=lambda change: (change[1], -change[0]), default=(0, 0))[0]

    def live_at(self, step: int) -> tuple[Rectangle, ...]:
        """Return the buffers that hold bytes while `step` runs, largest first."""
        live = [r for r in self.rectangles if r.is_live(step)]
        return tuple(sorted(live, key=lambda r: (-r.size_bytes, r.offset_bytes, r.name)))


def picture_of_buffers(
    title: str, buffers: Iterable[tuple[str, int, int, int, int]], lower_bound_bytes: int
) -> Picture:
    """Make the picture of a plan without a model.

    Args:
        title: Name of the plan, for example its file's name.
        buffers: Rows of name, start step, stop step, size in bytes, offset in bytes.
        lower_bound_bytes: A number of bytes below which no plan has its arena.
    """
    rectangles = tuple(
        Rectangle(name, size, offset, start, stop, kind="buffer")
        for name, start, stop, size, offset in buffers
    )
    arena_bytes = max((r.offset_bytes + r.size_bytes for r in rectangles), default=0)
    return Picture(title, arena_bytes, lower_bound_bytes, rectangles)


def _sum_of_live(rectangles: tuple[Rectangle, ...]) -> list[tuple[int, int]]:
    changes: dict[int, int] = {}
    for rectangle in rectangles:
        start, stop = rectangle.start_step, rectangle.stop_step
        changes[start] = changes.get(start, 0) + rectangle.size_bytes
        changes[stop] = changes.get(stop, 0) - rectangle.size_bytes
    loads, live_bytes = [], 0
    for step in sorted(changes):
        live_bytes += changes[step]
        loads.append((step, live_bytes))
    return loads
