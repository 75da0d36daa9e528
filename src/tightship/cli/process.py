"""What the operating system says of a process, most of it of this one."""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from tightship.resource.resident import mapped


def peak_resident_bytes() -> int:
    """The most that was ever resident."""
    return _status("VmHWM")


def data_bytes() -> int:
    """What the process has reserved for writing; a limit on data (`ulimit -d`) counts this."""
    return _status("VmData")


def _status(field: str) -> int:
    for line in Path("/proc/self/status").read_text(encoding="ascii").splitlines():
        if line.startswith(f"{field}:"):
            return int(line.split()[1]) * 1024
    return 0


@dataclass(frozen=True, slots=True)
class Usage:
    """What a process has resident, by three ways to count a page that others have too.

    Attributes:
        rss_bytes: Whole.
        pss_bytes: Divided by the processes that have it: sums over processes are what they take.
        uss_bytes: Not at all: what would be free if this process ended.
    """

    rss_bytes: int
    pss_bytes: int
    uss_bytes: int


def usage(pid: int) -> Usage:
    """Of a process that runs.

    Raises:
        OSError: There is none, or it is not this user's.
    """
    _, *lines = Path(f"/proc/{pid}/smaps_rollup").read_text(encoding="utf-8").splitlines()
    return _usage(_amounts(lines))


def usage_of_file(pid: int, file: Path) -> Usage:
    """Of the mappings of one file in a process.

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
