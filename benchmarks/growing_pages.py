"""Growing pages against pages of 2 MiB: what they hold, and the time of first and later passes."""

import ctypes
import random
import time
from collections.abc import Callable
from statistics import median

import numpy as np
from benchmarks.baselines.simulated import Columns

from tightship import _core
from tightship.resource.virtual import (
    GrowingVirtualResource,
    HostDevice,
    StealingVirtualResource,
    VirtualResource,
)

PASSES = 8
WRITTEN_PASSES = 5
WRITTEN_BYTES_MAX = 25 * 10**9
"""Most bytes of a trace whose blocks are written to."""
NEVER = 1e9
CONTENDERS: dict[str, Callable[[], VirtualResource]] = {
    "2 MiB": lambda: StealingVirtualResource(HostDevice(), page_bytes=2 << 20, idle_s=NEVER),
    "growing": lambda: GrowingVirtualResource(HostDevice(), idle_s=NEVER),
}
RANDOM = (
    *((6, 14, 200), (8, 18, 60), (8, 18, 400), (10, 20, 100)),
    *((8, 22, 100), (12, 24, 60), (12, 26, 80), (16, 27, 100)),
)
"""Programs: logarithms of the smallest and the largest size, and most blocks that are live."""


def random_columns(
    seed: int, least: float, largest: float, most: int, count: int = 8000
) -> Columns:
    """Allocate and free at random, in phases that each keep another number of blocks.

    Args:
        seed: Seed.
        least: Logarithm of the smallest size, to the base 2.
        largest: Logarithm of the largest size.
        most: Most blocks that a phase keeps.
        count: Events.
    """
    rng, live, free = random.Random(seed), [], []
    slots, sizes, wanted = [], [], most
    for _ in range(count):
        if rng.random() < 0.01:
            wanted = rng.randint(most // 4, most)
        if live and (len(live) > wanted or rng.random() < 0.45):
            slot = live.pop(rng.randrange(len(live)) if rng.random() < 0.6 else -1)
            free.append(slot)
            slots.append(~slot)
            sizes.append(0)
        else:
            slot = free.pop() if free else len(live)
            live.append(slot)
            slots.append(slot)
            sizes.append(int(2 ** rng.uniform(least, largest)))
    return np.array(slots, np.int64), np.array(sizes, np.int64)


def compared(columns: Columns, rounds: int) -> dict[str, dict[str, float]]:
    """Play a trace by each in turn, again and again on one resource.

    Returns:
        By contender: bytes held over bytes live at the peak, and medians of nanoseconds for an
        operation, of the first pass and of later ones.
    """
    first: dict[str, list[float]] = {name: [] for name in CONTENDERS}
    later: dict[str, list[float]] = {name: [] for name in CONTENDERS}
    figures: dict[str, dict[str, float]] = {}
    for _ in range(rounds):
        for name, make in CONTENDERS.items():
            resource = make()
            for number in range(PASSES):
                played = _core.replay(resource, *columns, part_count=0)
                kept = later if number else first
                kept[name].append(played.duration_ns / len(columns[0]))
            held = resource.virtual_statistics().peak_physical_bytes
            figures[name] = {
                "peak_live_bytes": played.peak_live_bytes,
                "ratio": round(held / played.peak_live_bytes, 4),
            }
    for name, row in figures.items():
        row["first_ns"] = round(median(first[name]), 1)
        row["later_ns"] = round(median(later[name]), 1)
    return figures


def written(columns: Columns) -> dict[str, float]:
    """Play a trace by each in turn, and write each block once.

    Returns:
        By contender, the median seconds of processor time of a pass after the first; nothing if
        the trace has more than `WRITTEN_BYTES_MAX`.
    """
    slots, sizes = (column.tolist() for column in columns)
    if sum(sizes) > WRITTEN_BYTES_MAX:
        return {}
    resources = {name: make() for name, make in CONTENDERS.items()}
    times: dict[str, list[float]] = {name: [] for name in CONTENDERS}
    for _ in range(WRITTEN_PASSES):
        for name, resource in resources.items():
            times[name].append(_written_pass_s(resource, slots, sizes))
    return {name: round(median(each[1:]), 5) for name, each in times.items()}


def _written_pass_s(resource: VirtualResource, slots: list[int], sizes: list[int]) -> float:
    live: dict[int, tuple[int, int]] = {}
    start = time.thread_time()
    for slot, size in zip(slots, sizes, strict=True):
        if slot < 0:
            resource.deallocate(*live.pop(~slot))
        else:
            live[slot] = address, _ = resource.allocate(size), size
            ctypes.memset(address, 1, size)
    taken_s = time.thread_time() - start
    for address, size in live.values():
        resource.deallocate(address, size)
    return taken_s
