"""Defines the data of a profile: steps and their times, independent of how they were measured."""

from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import dataclass
from statistics import median
from typing import TypeVar

from tightship.brief import brief

Key = TypeVar("Key", bound=Hashable)


@brief
@dataclass(frozen=True, slots=True)
class TimedStep:
    """A step, with its start and end in each run, in nanoseconds from the run's start.

    Attributes:
        name: Name of the step.
        operator: Operator that the step computes.
        tier: Kind of kernel: `onednn`, `native`, `numpy` or `reference`.
        implementation: Name of the kernel within its tier.
        shapes: Shapes of the inputs and outputs.
        read_bytes: Bytes of the inputs in their layouts; for an input that is read in part, as by a
            gather, the bytes that are written.
        written_bytes: Bytes of the outputs.
        live_bytes: Live bytes of the arena while the step runs.
        starts_ns: Start in each run.
        ends_ns: End in each run.
        is_reorder: Whether the step only changes the layout of a value.
    """

    name: str
    operator: str
    tier: str
    implementation: str
    shapes: str
    read_bytes: int
    written_bytes: int
    live_bytes: int
    starts_ns: tuple[int, ...]
    ends_ns: tuple[int, ...]
    is_reorder: bool = False

    @property
    def median_ns(self) -> float:
        """Median duration over the runs, in nanoseconds."""
        return median(b - a for a, b in zip(self.starts_ns, self.ends_ns, strict=True))

    @property
    def bytes_per_ns(self) -> float:
        """Bytes read and written in a nanosecond, which is GB/s."""
        taken = self.median_ns
        return (self.read_bytes + self.written_bytes) / taken if taken else 0.0


@brief
@dataclass(frozen=True, slots=True)
class Timing:
    """Every step of a program, timed over several runs.

    Attributes:
        title: Name of the program.
        steps: The steps in order.
        runs_ns: Length of each run, from its first step's start to its last step's end.
        segments: Half-open ranges of steps that run in one call, native or not.
        key: Facts that the figures depend on besides the model, such as threads.
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
        """Share of the steps' time that changes of layout take."""
        return self.share(sum(step.median_ns for step in self.steps if step.is_reorder))

    @property
    def middle_run(self) -> int:
        """Index of a run of median length."""
        order = sorted(range(len(self.runs_ns)), key=lambda index: self.runs_ns[index])
        return order[(len(order) - 1) // 2]

    def share(self, taken_ns: float) -> float:
        """Return `taken_ns` as a share of the steps' time."""
        return taken_ns / self.steps_ns if self.steps_ns else 0.0


def grouped(timing: Timing, key: Callable[[TimedStep], Key]) -> dict[Key, list[TimedStep]]:
    """Group steps by the key that `key` returns, the group that takes longest first."""
    groups: dict[Key, list[TimedStep]] = {}
    for step in timing.steps:
        groups.setdefault(key(step), []).append(step)
    return dict(sorted(groups.items(), key=lambda group: -taken_ns(group[1])))


def taken_ns(steps: Iterable[TimedStep]) -> float:
    """Sum the medians of some steps."""
    return sum(step.median_ns for step in steps)
