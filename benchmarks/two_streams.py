"""A trace on two streams at once, in an order that is always the same.

The streams do nothing, and are as far behind as the caller says: work is done when so many events
have passed, or when it is waited for.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field

from benchmarks.baselines.simulated import Columns

from tightship.resource.virtual import PythonStream, VirtualResource

LAG_EVENTS = 16
LOOKS = 8  # more at one event are of one who waits


@dataclass(slots=True)
class Clock:
    """Events so far."""

    now: int = 0

    def record(self) -> "Passed":
        """A fence behind what was asked for so far."""
        return Passed(self, self.now + LAG_EVENTS)


@dataclass(slots=True)
class Passed:
    """A fence."""

    clock: Clock
    at: int
    looks: list[int] = field(default_factory=lambda: [0, 0])

    def is_signalled(self) -> bool:
        """Whether its event is past; who looks again and again has time pass."""
        self.looks = [self.clock.now, self.looks[1] + 1 if self.looks[0] == self.clock.now else 1]
        if self.looks[1] > LOOKS:
            self.clock.now = max(self.clock.now, self.at)
        return self.clock.now >= self.at


def interleaved(columns: Columns) -> Iterator[tuple[int, int, int]]:
    """Stream, slot and bytes: an event of each alternately, the second a quarter behind."""
    events = list(zip(*(column.tolist() for column in columns), strict=True))
    behind = len(events) // 4
    for index in range(len(events) + behind):
        if index < len(events):
            yield 0, *events[index]
        if index >= behind:
            yield 1, *events[index - behind]


def two_streams(resource: VirtualResource, columns: Columns) -> dict[str, float]:
    """Return held over live bytes; blocks are live until freed, whatever work is left."""
    clock = Clock()
    streams = [PythonStream(clock.record) for _ in range(2)]
    live: dict[tuple[int, int], tuple[int, int]] = {}
    live_bytes = peak_live_bytes = 0
    for stream, slot, size_bytes in interleaved(columns):
        clock.now += 1
        if slot >= 0:
            address = resource.allocate_on(size_bytes, streams[stream])
            live[stream, slot] = address, size_bytes
            live_bytes += size_bytes
            peak_live_bytes = max(peak_live_bytes, live_bytes)
        else:
            address, freed_bytes = live.pop((stream, ~slot))
            resource.deallocate_on(address, freed_bytes, streams[stream])
            live_bytes -= freed_bytes
    now = resource.virtual_statistics()
    return {
        "peak_live_bytes": peak_live_bytes,
        "ratio": round(now.peak_physical_bytes / peak_live_bytes, 4),
        "remap_share": round(now.remap_count / now.allocation_count, 4),
        "wait_share": round(now.wait_count / now.allocation_count, 4),
    }
