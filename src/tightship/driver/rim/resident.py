"""What the kernel says of this process's mappings."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

_HEADER = re.compile("([0-9a-f]+)-([0-9a-f]+) ")


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
    start = stop = 0
    for line in smaps.read_text(encoding="utf-8", errors="replace").splitlines():
        if line.startswith("Pss:"):
            yield Resident(start, stop, int(line.split()[1]) * 1024)
        elif (found := _HEADER.match(line)) is not None:
            start, stop = int(found[1], 16), int(found[2], 16)
