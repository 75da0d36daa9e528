"""Resident memory of this process's mappings."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tightship.resource.resident import mapped


@dataclass(frozen=True, slots=True)
class Resident:
    """Proportional set size of the addresses `[start, stop)`."""

    start: int
    stop: int
    pss_bytes: int

    def share_bytes(self, start: int, stop: int) -> int:
        """Return the part in other addresses, pro rata: the kernel may have merged neighbours."""
        common = max(0, min(stop, self.stop) - max(start, self.start))
        return self.pss_bytes * common // (self.stop - self.start)


def residents() -> Iterator[Resident]:
    """Yield all mappings in address order.

    Raises:
        OSError: `/proc/self/smaps` cannot be read.
    """
    for found in mapped(Path("/proc/self/smaps")):
        for line in found.lines:
            if line.startswith("Pss:"):
                yield Resident(found.start, found.stop, int(line.split()[1]) * 1024)
