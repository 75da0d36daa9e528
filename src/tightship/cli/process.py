"""Reads the memory of processes, mostly of this one, from the operating system."""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from tightship.resource.resident import mapped


def peak_resident_bytes() -> int:
    """Return the largest resident size of this process so far, in bytes."""
    return _status("VmHWM")


def data_bytes() -> int:
    """Return the writable memory that this process has reserved, which `ulimit -d` limits."""
    return _status("VmData")


def _status(field: str) -> int:
    for line in Path("/proc/self/status").read_text(encoding="ascii").splitlines():
        if line.startswith(f"{field}:"):
            return int(line.split()[1]) * 1024
    return 0


@dataclass(frozen=True, slots=True)
class Usage:
    """Resident memory of a process, by three ways to count pages shared with other processes.

    Attributes:
        rss_bytes: Shared pages counted whole.
        pss_bytes: Shared pages divided by the number of processes that map them, so that a sum over
            processes counts no page twice.
        uss_bytes: Shared pages not counted: the memory that becomes free when the process ends.
    """

    rss_bytes: int
    pss_bytes: int
    uss_bytes: int


def usage(pid: int) -> Usage:
    """Read the memory of a running process.

    Raises:
        OSError: The process does not exist, or belongs to another user.
    """
    _, *lines = Path(f"/proc/{pid}/smaps_rollup").read_text(encoding="utf-8").splitlines()
    return _usage(_amounts(lines))


def usage_of_file(pid: int, file: Path) -> Usage:
    """Read the memory of the mappings of one file in a process.

    Raises:
        OSError: As `usage`.
    """
    path = str(file.resolve())
    total = Counter[str]()
    for found in mapped(Path(f"/proc/{pid}/smaps")):
        if found.header.endswith(path):
            total.update(_amounts(found.lines))
    return _usage(total)


def _usage(amounts: Mapping[str, int]) -> Usage:
    private = amounts["Private_Clean"] + amounts["Private_Dirty"]
    return Usage(amounts["Rss"], amounts["Pss"], private)


def _amounts(lines: Iterable[str]) -> dict[str, int]:
    fields = (line.split() for line in lines if line.endswith(" kB"))
    return {name.rstrip(":"): int(kib) * 1024 for name, kib, _ in fields}
