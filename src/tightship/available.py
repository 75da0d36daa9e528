"""Memory that a process may still take, as far as the system reports it."""

import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path("/")


def available_bytes(root: Path = ROOT) -> int:
    """Return the bytes left to this process on the machine and in its control groups.

    Pages of files that the system can reclaim count as left. An unreadable limit is ignored.

    Args:
        root: Folder that contains `proc` and `sys`.
    """
    return min([*_of_machine(root), *_of_groups(root)], default=sys.maxsize)


def _of_machine(root: Path) -> Iterator[int]:
    for line in _text(root / "proc" / "meminfo").splitlines():
        if line.startswith("MemAvailable:"):
            yield int(line.split()[1]) * 1024


def _of_groups(root: Path) -> Iterator[int]:
    """Yield the bytes left in each control group of the process, for both versions."""
    for line in _text(root / "proc" / "self" / "cgroup").splitlines():
        _, controllers, path = line.split(":", 2)
        mounted = root / "sys" / "fs" / "cgroup"
        if not controllers:
            yield from _of_group(mounted, path, ("memory.max", "memory.current", "inactive_file"))
        elif "memory" in controllers.split(","):
            names = ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file")
            yield from _of_group(mounted / "memory", path, names)


def _of_group(mounted: Path, path: str, names: tuple[str, str, str]) -> Iterator[int]:
    """Yield the bytes left in a group and in its visible ancestors."""
    limit_name, used_name, idle_name = names
    folder = mounted / path.strip("/")
    for each in (folder, *folder.parents):
        limit, used = _text(each / limit_name).strip(), _text(each / used_name).strip()
        if limit.isdigit() and used.isdigit():
            idle = dict(line.split() for line in _text(each / "memory.stat").splitlines())
            yield int(limit) - int(used) + int(idle.get(idle_name, 0))
        if each == mounted:
            return


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="ascii")
    except OSError:
        return ""
