"""What a memory resource makes of a recorded trace."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tightship import _core
from tightship.public_calls import public_call
from tightship.resource import MemoryResource
from tightship.trace.events import Trace

ROUNDS = 3
PARTS = 400


@dataclass(frozen=True, slots=True)
class Outcome:
    """Peaks, what led to them, and the least of several times.

    `peak_live_bytes` counts blocks as they were asked for, `peak_held_bytes` what the resource had
    touched; `live_bytes` and `held_bytes` have the most in each of `PARTS` parts of the trace.
    `ns_per_operation` is processor time of an allocation or a deallocation, with no block written
    to.
    """

    operation_count: int
    refused_count: int
    peak_live_bytes: int
    peak_held_bytes: int
    ns_per_operation: float
    live_bytes: tuple[int, ...]
    held_bytes: tuple[int, ...]

    @property
    def held_ratio(self) -> float:
        """Peak held over peak live; 1 where nothing was ever live."""
        return self.peak_held_bytes / self.peak_live_bytes if self.peak_live_bytes else 1.0

    @property
    def fragmentation(self) -> float:
        """The part of the peak that live blocks did not need at their own peak."""
        return max(0.0, 1 - 1 / self.held_ratio) if self.held_ratio else 0.0


@public_call
def replay(trace: Trace, make: Callable[[], MemoryResource]) -> Outcome:
    """Play a trace to a new resource to look at it, then to another one to take the time.

    The time is of later rounds, when the resource has its pages: filling those with zeros is the
    system's work, and what `malloc` does not touch itself the program would.

    Raises:
        InputError, OutOfMemoryError: What `make` raises.
    """
    slots, sizes = trace_columns(trace)
    looked = _core.replay(make(), slots, sizes, part_count=max(1, min(PARTS, len(slots))))
    timed = make()
    rounds = [_core.replay(timed, slots, sizes, part_count=0) for _ in range(1 + ROUNDS)]
    warm = rounds[1:] if timed.supports_free else rounds[:1]
    least_ns = min(played.duration_ns for played in warm)
    return Outcome(
        operation_count=len(slots),
        refused_count=looked.refused_count,
        peak_live_bytes=looked.peak_live_bytes,
        peak_held_bytes=looked.peak_held_bytes,
        ns_per_operation=least_ns / max(1, len(slots)),
        live_bytes=tuple(looked.live_bytes),
        held_bytes=tuple(looked.held_bytes),
    )


def trace_columns(trace: Trace) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """A slot for each event, `~slot` for one that goes, and its bytes; slots are used again."""
    slots = np.empty(len(trace.events), np.int64)
    sizes = np.empty(len(trace.events), np.int64)
    slot_of: dict[int, int] = {}
    free: list[int] = []
    for index, event in enumerate(trace.events):
        if event.is_allocation:
            slot = free.pop() if free else len(slot_of)
            slot_of[event.number] = slots[index] = slot
        else:
            slot = slot_of.pop(event.number)
            free.append(slot)
            slots[index] = ~slot
        sizes[index] = event.size_bytes
    return slots, sizes
