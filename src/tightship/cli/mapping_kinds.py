"""Sorts the mappings of a process by kind, with their bytes."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from tightship.resource.resident import Mapped, mapped

_FLAGS_AT = 1
_PATH_AT = 5


@dataclass(frozen=True, slots=True)
class KindBytes:
    """Bytes of the mappings of one kind.

    Attributes:
        data_bytes: Writable private addresses, used or not, which RLIMIT_DATA counts.
        resident_bytes: Pages in memory, those shared with other processes too.
    """

    data_bytes: int = 0
    resident_bytes: int = 0

    def __add__(self, other: "KindBytes") -> "KindBytes":
        """Add the bytes of another mapping."""
        return KindBytes(
            self.data_bytes + other.data_bytes, self.resident_bytes + other.resident_bytes
        )


def kinds_of(pid: int) -> Mapping[str, KindBytes]:
    """Sum the mappings of a process by kind, in the order of their addresses.

    Returns:
        Bytes by kind; empty for a process that has ended and was not waited for.

    Raises:
        OSError: The process does not exist, or belongs to another user.
    """
    found: dict[str, KindBytes] = {}
    for each in mapped(Path(f"/proc/{pid}/smaps")):
        fields = each.header.split(maxsplit=_PATH_AT)
        kind = _kind(fields[_FLAGS_AT], fields[_PATH_AT] if len(fields) > _PATH_AT else "")
        found[kind] = found.get(kind, KindBytes()) + _bytes(each, fields[_FLAGS_AT], kind)
    return found


def _kind(flags: str, path: str) -> str:
    if flags.endswith("s"):
        return "shared memory"
    if path == "[heap]":
        return "heap"
    if path.startswith("[stack"):
        return "main stack"
    if path.startswith("[v"):
        return "kernel's own"
    return "programs and files" if path.startswith("/") else "anonymous"


def _bytes(mapping: Mapped, flags: str, kind: str) -> KindBytes:
    is_data = "w" in flags and flags.endswith("p") and kind != "main stack"
    resident = next((line for line in mapping.lines if line.startswith("Rss:")), "Rss: 0 kB")
    return KindBytes(
        mapping.stop - mapping.start if is_data else 0, int(resident.split()[1]) * 1024
    )
