"""What the kernel says of this process's mappings."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tightship.resource.resident import mapped


@dataclass(frozen=True, slots=True)
class Resident:
    """Pages of addresses `[start, stop)`, each divided by the processes that have it mapped."""

    start: int
    stop: int
    pss_bytes: int

    def share_bytes(self, start: int, stop: int) -> int:
        """What of it lies in other addresses; the kernel may have joined neighbours."""
        common = max(0, min(stop, self.stop) - max(start, self.start))
        return self.pss_bytes * common // (self.stop - self.start)


def residents(smaps: Path = Path("/proc/self/smaps")) -> Iterator[Resident]:
    """All mappings, in the order of their addresses.

    Raises:
        OSError: The kernel does not say.
    """
    for found in mapped(smaps):
        for line in found.lines:
            if line.startswith("Pss:"):
                yield Resident(found.start, found.stop, int(line.split()[1]) * 1024)
