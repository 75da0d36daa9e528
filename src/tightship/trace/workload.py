"""Finds the division of a composite resource that suits a recorded trace best.

The sizes that slabs serve are divided into classes, one slab for each. The cost of a class is the
most blocks of it that were live at once, rounded up to whole words of a bitmap, times the size of
the largest. `recommend` takes the division of the least total cost.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tightship.public_calls import public_call
from tightship.quantity import parse_bytes
from tightship.resource import CompositeResource, HostResource
from tightship.resource.division import BLOCK_SIZES, PAGE_BYTES, SLACK, WORD_BLOCKS, divide
from tightship.resource.settings import PREFIX, Shares, parse_shares, shares_text
from tightship.trace.events import Trace
from tightship.trace.replay import Outcome, replay

CANDIDATES = tuple(
    sorted(
        {
            size
            for power in range(4, BLOCK_SIZES[-1].bit_length())
            for size in range(1 << power, 2 << power, max(16, 1 << power >> 2))
            if size <= BLOCK_SIZES[-1]
        }
    )
)
"""Block sizes to choose from: multiples of 16, four for each doubling."""

COVERED = 0.99
"""Slabs serve the smallest sizes up to this share of the requests that they could serve."""

REGION_GRAIN_BYTES = 2 << 20

Column = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class SlabClass:
    """Requests that one slab serves, and the most of them that were live at once."""

    block_bytes: int
    peak_count: int
    request_count: int


@dataclass(frozen=True, slots=True)
class Division:
    """A composite of `region_bytes`: slabs by increasing size, then a bump and a free list."""

    region_bytes: int
    slabs: Shares
    classes: tuple[SlabClass, ...]
    rest_touched_bytes: int

    @property
    def rest_share(self) -> float:
        """Share of the region that slabs leave."""
        return 1 - sum(share for _, share in self.slabs)

    @property
    def environment(self) -> dict[str, str]:
        """Environment variables that make `main_memory()` use this division."""
        return {
            f"{PREFIX}MAIN_BYTES": str(self.region_bytes),
            f"{PREFIX}SLABS": shares_text(self.slabs),
        }

    def make(self) -> CompositeResource:
        """Make a composite with this division.

        Raises:
            OutOfMemoryError: The system refuses so much address space.
        """
        return CompositeResource(HostResource(), self.region_bytes, slabs=self.slabs)


@public_call
def recommend(trace: Trace, region_bytes: int | None = None) -> Division:
    """Divide a region for the blocks that `trace` has live at once.

    Slabs have room for a quarter more than the trace's peaks. If `region_bytes` is not given, so
    has the rest; a replay measures how much of the rest the trace needs.

    Args:
        trace: The events.
        region_bytes: Size of the region; by default as much as the trace needs.

    Raises:
        InputError: The region has no room for a page of slabs and a page of the rest.
        OutOfMemoryError: The system refuses the address space.
    """
    classes = slab_classes(trace)
    counts = {each.block_bytes: each.peak_count for each in classes}
    sizes = tuple(counts)
    # Wide enough that no request is refused, so that the replay measures the whole demand of the
    # rest.
    wide_bytes = 4 * _peak_bytes(trace) + 64 * REGION_GRAIN_BYTES
    rest_touched_bytes = _rest_touched_bytes(trace, _slabs(counts, wide_bytes, sizes), wide_bytes)
    if region_bytes is None:
        slab_bytes = sum(share for _, share in divide(counts, wide_bytes, sizes)) * wide_bytes
        needed_bytes = int(SLACK * rest_touched_bytes + slab_bytes) + PAGE_BYTES
        region_bytes = -(-needed_bytes // REGION_GRAIN_BYTES) * REGION_GRAIN_BYTES
    slabs = _slabs(counts, parse_bytes(region_bytes), sizes)
    return Division(region_bytes, slabs, classes, rest_touched_bytes)


def slab_classes(trace: Trace) -> tuple[SlabClass, ...]:
    """Return the cheapest division of the requests into slabs, by increasing size; empty if none.

    Args:
        trace: The events.

    Complexity: O(c * c * n) time for c candidates and n events.
    """
    classes, steps = _small_events(trace)
    requests = np.bincount(classes[steps > 0], minlength=len(CANDIDATES))
    if not requests.any():
        return ()
    reach = int(np.searchsorted(np.cumsum(requests), COVERED * requests.sum())) + 1
    live = [np.cumsum(np.where(classes == each, steps, 0)) for each in range(reach)]
    return _cheapest(live, requests)


def _cheapest(live: Sequence[Column], requests: Column) -> tuple[SlabClass, ...]:
    """Find the cheapest classes by dynamic programming over the largest candidate of each.

    Args:
        live: Live blocks of each candidate after each event.
        requests: Requests for each candidate.
    """
    best: list[tuple[int, tuple[SlabClass, ...]]] = [(0, ())]
    for last in range(len(live)):
        together = np.zeros_like(live[0])
        choices = []
        for first in range(last, -1, -1):
            together += live[first]
            peak = int(together.max())
            cost_bytes, below = best[first]
            made = SlabClass(CANDIDATES[last], peak, int(requests[first : last + 1].sum()))
            if made.request_count:
                choices.append((cost_bytes + _cost_bytes(made), (*below, made)))
            else:
                choices.append((cost_bytes, below))
        best.append(min(choices, key=lambda choice: (choice[0], len(choice[1]))))
    return best[-1][1]


def _cost_bytes(each: SlabClass) -> int:
    words = -(-each.peak_count // WORD_BLOCKS)
    return words * WORD_BLOCKS * each.block_bytes + PAGE_BYTES


def _small_events(trace: Trace) -> tuple[Column, Column]:
    """Return the candidate of each event that a slab could serve, and its change of live blocks."""
    found: dict[int, int] = {}
    classes, steps = [], []
    for event in trace.events:
        if event.is_allocation and event.size_bytes <= CANDIDATES[-1]:
            index = int(np.searchsorted(CANDIDATES, event.size_bytes))
            found[event.number] = index
            classes.append(index)
            steps.append(1)
        elif not event.is_allocation and event.number in found:
            classes.append(found.pop(event.number))
            steps.append(-1)
    return np.array(classes, np.int64), np.array(steps, np.int64)


def _slabs(counts: dict[int, int], region_bytes: int, sizes: tuple[int, ...]) -> Shares:
    """Return shares rounded as their text is, so that the text describes the same division."""
    return parse_shares(shares_text(divide(counts, region_bytes, sizes)))


def _rest_touched_bytes(trace: Trace, slabs: Shares, region_bytes: int) -> int:
    made: list[CompositeResource] = []

    def make() -> CompositeResource:
        made[:] = [CompositeResource(HostResource(), region_bytes, slabs=slabs)]
        return made[0]

    replay(trace, make)
    return made[0].bump.statistics().touched_bytes


def _peak_bytes(trace: Trace) -> int:
    live: dict[int, int] = {}
    now = peak = 0
    for event in trace.events:
        if event.is_allocation:
            live[event.number] = event.size_bytes
        now += event.size_bytes if event.is_allocation else -live.pop(event.number)
        peak = max(peak, now)
    return peak


def compare(trace: Trace, division: Division) -> dict[str, Outcome]:
    """Replay a trace on the division, on the documented default, and on a composite without slabs.

    Args:
        trace: The events.
        division: The division to compare.

    Returns:
        Outcomes by the names `recommended`, `default` and `without slabs`.

    Raises:
        OutOfMemoryError: The system refuses the address space.
    """
    size_bytes = max(division.region_bytes, 4 * _peak_bytes(trace) + 64 * REGION_GRAIN_BYTES)
    return {
        "recommended": replay(trace, division.make),
        "default": replay(trace, lambda: CompositeResource(HostResource(), size_bytes)),
        "without slabs": replay(
            trace, lambda: CompositeResource(HostResource(), size_bytes, slabs=())
        ),
    }
