"""What a profile draws: the plain facts of steps and the times they took, whoever measured."""

from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import dataclass
from statistics import median
from typing import TypeVar

Key = TypeVar("Key", bound=Hashable)


@dataclass(frozen=True, slots=True)
class TimedStep:
    """A step, and when it started and ended in each run, in nanoseconds from the run's start.

    Attributes:
        tier: What runs it: `onednn`, `native`, `numpy` or `reference`.
        shapes: Of what it reads and of what it writes.
        read_bytes: Of the operands it reads, in their layouts; of one that it reads in part,
            as a gather does, what it writes.
        written_bytes: Of what it writes.
        load_bytes: Live bytes of the arena while it runs.
        is_reorder: Whether it only brings a value into another layout.
    """

    name: str
    operator: str
    tier: str
    implementation: str
    shapes: str
    read_bytes: int
    written_bytes: int
    load_bytes: int
    starts_ns: tuple[int, ...]
    ends_ns: tuple[int, ...]
    is_reorder: bool = False

    @property
    def median_ns(self) -> float:
        """Time it takes, the median over runs."""
        return median(b - a for a, b in zip(self.starts_ns, self.ends_ns, strict=True))

    @property
    def bytes_per_ns(self) -> float:
        """Bytes read and written a nanosecond: GB/s."""
        taken = self.median_ns
        return (self.read_bytes + self.written_bytes) / taken if taken else 0.0


@dataclass(frozen=True, slots=True)
class Timing:
    """Every step of a program, timed over some runs.

    Attributes:
        runs_ns: Length of each run, from its first step's start to its last step's end.
        segments: Half-open ranges of steps that run in one call, native or not.
        key: What the figures depend on besides the model.
    """

    title: str
    steps: tuple[TimedStep, ...]
    runs_ns: tuple[int, ...]
    segments: tuple[tuple[int, int], ...]
    key: Mapping[str, str]

    @property
    def steps_ns(self) -> float:
        """Sum of the steps' medians."""
        return sum(step.median_ns for step in self.steps)

    @property
    def reorder_share(self) -> float:
        """Part of the steps' time that goes to changes of layout."""
        return self.share(sum(step.median_ns for step in self.steps if step.is_reorder))

    @property
    def middle_run(self) -> int:
        """Index of a run of median length."""
        order = sorted(range(len(self.runs_ns)), key=lambda index: self.runs_ns[index])
        return order[(len(order) - 1) // 2]

    def share(self, taken_ns: float) -> float:
        """Part of the steps' time."""
        return taken_ns / self.steps_ns if self.steps_ns else 0.0


def grouped(timing: Timing, key: Callable[[TimedStep], Key]) -> dict[Key, list[TimedStep]]:
    """Steps by what `key` says of them, the group that takes longest first."""
    groups: dict[Key, list[TimedStep]] = {}
    for step in timing.steps:
        groups.setdefault(key(step), []).append(step)
    return dict(sorted(groups.items(), key=lambda group: -taken_ns(group[1])))


def taken_ns(steps: Iterable[TimedStep]) -> float:
    """Sum of the medians of some steps."""
    return sum(step.median_ns for step in steps)
