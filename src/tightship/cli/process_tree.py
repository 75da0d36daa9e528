"""Finds the descendants of a process, and reads what each holds."""

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

_FIELDS = (b"VmHWM", b"VmRSS", b"VmData")
"""Lines of a process's status, in the order of the attributes of `Holding`."""


@dataclass(frozen=True, slots=True)
class Holding:
    """Memory of a process now, in bytes.

    Attributes:
        peak_resident_bytes: Most that was resident since the program started, which the kernel
            keeps.
        resident_bytes: Resident now, pages shared with other processes included.
        data_bytes: Writable private addresses, which RLIMIT_DATA bounds.
    """

    peak_resident_bytes: int
    resident_bytes: int
    data_bytes: int


def holding(pid: int) -> Holding | None:
    """Read a process; None if it has ended."""
    try:
        with open(f"/proc/{pid}/status", "rb", buffering=0) as file:
            lines = file.read().splitlines()
    except OSError:
        return None
    found = {name: int(line.split()[1]) * 1024 for line in lines
             if (name := line.partition(b":")[0]) in _FIELDS}  # fmt: skip
    if len(found) < len(_FIELDS):  # ended, but not waited for
        return None
    return Holding(*(found[name] for name in _FIELDS))


def with_descendants(roots: Iterable[int]) -> list[int]:
    """Return the processes and all that descend from them, parents first."""
    children = _children()
    found = list(roots)
    seen = set(found)
    for pid in found:
        found += (each for each in children.get(pid, ()) if each not in seen)
        seen.update(found)
    return found


def _children() -> Mapping[int, list[int]]:
    """Children of each process; kernels may lack the file that lists those of one."""
    found: dict[int, list[int]] = {}
    for name in os.listdir("/proc"):
        if not name.isdigit():
            continue
        try:
            with open(f"/proc/{name}/stat", "rb", buffering=0) as file:
                stat = file.read()
        except OSError:  # it has ended
            continue
        # The name of the program stands in parentheses, and may have spaces and parentheses.
        parent = int(stat.rpartition(b")")[2].split(None, 2)[1])
        found.setdefault(parent, []).append(int(name))
    return found
