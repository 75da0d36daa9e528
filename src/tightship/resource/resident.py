"""Resident memory of a process, from `/proc`."""

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

_HEADER = re.compile("([0-9a-f]+)-([0-9a-f]+) ")


@dataclass(frozen=True, slots=True)
class Mapped:
    """Mapping of addresses `[start, stop)`.

    Attributes:
        header: Header line, which ends in the path of its file.
        lines: Lines of its amounts.
    """

    start: int
    stop: int
    header: str
    lines: tuple[str, ...]


def mapped(smaps: Path) -> Iterator[Mapped]:
    """Yield all mappings of a process, in the order of their addresses; none once it has ended.

    Raises:
        OSError: The kernel refuses to say.
    """
    lines = smaps.read_text(encoding="utf-8", errors="replace").splitlines()
    found = [(index, head) for index, line in enumerate(lines) if (head := _HEADER.match(line))]
    ends = [*(index for index, _ in found[1:]), len(lines)]
    for (index, head), end in zip(found, ends, strict=False):
        rest = tuple(lines[index + 1 : end])
        yield Mapped(int(head[1], 16), int(head[2], 16), lines[index], rest)


def resident_bytes() -> int:
    """Return the resident bytes of this process, with shared memory that it has mapped."""
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")
