"""Replays a recorded trace on a memory resource."""

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
    """Peaks and time of a replay.

    Attributes:
        operation_count: Allocations and deallocations of the trace.
        refused_count: Allocations that the resource refused.
        peak_live_bytes: Largest sum of the live blocks' requested sizes.
        peak_held_bytes: Most bytes that the resource had touched.
        ns_per_operation: Processor time of an allocation or deallocation, without writing to
            blocks; the least of several rounds.
        live_bytes: Largest live bytes in each of up to `PARTS` parts of the trace.
        held_bytes: Largest held bytes in each of these parts.
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
        """Peak held bytes over peak live bytes; 1 if no block was ever live."""
        return self.peak_held_bytes / self.peak_live_bytes if self.peak_live_bytes else 1.0

    @property
    def fragmentation(self) -> float:
        """Share of the held peak that live blocks did not need at their own peak."""
        return max(0.0, 1 - 1 / self.held_ratio) if self.held_ratio else 0.0


@public_call
def replay(trace: Trace, make: Callable[[], MemoryResource]) -> Outcome:
    """Replay a trace on a new resource for its peaks, then on another one for its time.

    The time is that of later rounds, when the resource already has its pages. In the first round
    the system fills pages with zeros, for resources that touch their memory; for `malloc`, which
    does not, the program would pay later.

    Args:
        trace: The events.
        make: Makes a new resource; called twice.

    Raises:
        InputError, OutOfMemoryError: As `make`.
    """
    slots, sizes = trace_columns(trace)
    looked = _core.replay(make(), slots, sizes, part_count=max(1, min(PARTS, len(slots))))
    timed = make()
    rounds = [_core.replay(timed, slots, sizes, part_count=0) for _ in range(1 + ROUNDS)]
    # A resource that frees nothing grows with each round, so only its first round is typical.
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
    """Return a slot for each event, `~slot` for a deallocation, and its bytes; slots are reused.

    Returns:
        Slots and sizes; int64 of shape (events,) each.
    """
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
