"""Lists and removes entries of the cache, and evicts the least recently used ones."""

import json
import os
import re
import time
from collections.abc import Collection, Iterator
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from tightship.prepared_cache.lock import locked_if_free

FILE = "model.tship"
ABOUT = "about.json"
LOCK = "lock"
DRAFT = "draft.tship"
KNOWN = "known"
NOTES = {".json", ".lock", ".draft"}
KEY = re.compile(r"[0-9a-f]{64}")


class Entry(NamedTuple):
    """A folder of the cache, complete when it has a prepared model.

    Attributes:
        key: Name of the folder.
        size_bytes: Total size of its files.
        used_ns: Time when a process last loaded it, in nanoseconds since 1970.
        is_complete: Whether it can be loaded; otherwise it is being made, or the process that made
            it has crashed.
        about: Facts that `PreparedCache` wrote when it made the entry; empty if they are lost.
    """

    key: str
    size_bytes: int
    used_ns: int
    is_complete: bool
    about: dict[str, object]


def entries(folder: Path) -> list[Entry]:
    """List all entries, the most recently used first; none if there is no folder.

    Raises:
        OSError: The folder cannot be read.
    """
    found = [entry for path in _folders(folder) if (entry := _entry(path)) is not None]
    return sorted(found, key=lambda entry: -entry.used_ns)


def clear(folder: Path) -> tuple[list[Entry], list[Entry]]:
    """Remove every entry and all notes on models.

    Returns:
        The entries removed, and those that were left because they are being made.

    Raises:
        OSError: A file cannot be removed.
    """
    removed: list[Entry] = []
    left: list[Entry] = []
    for entry in entries(folder):
        (removed if remove(folder, entry.key) else left).append(entry)
    _forget(folder, {str(entry.about.get("content")) for entry in left})
    return removed, left


def remove(folder: Path, key: str) -> bool:
    """Remove an entry unless it is being made; return whether it is gone.

    Raises:
        OSError: The entry cannot be removed.
    """
    path = folder / key
    try:
        with locked_if_free(path / LOCK) as is_ours:
            if is_ours:
                _empty(path)
            return is_ours
    except FileNotFoundError:
        return True


def trim(folder: Path, limit_bytes: int, kept: str) -> None:
    """Evict least recently used entries until the rest fits; `kept` and locked entries stay.

    Args:
        folder: Folder of the cache.
        limit_bytes: Most bytes that the entries may take.
        kept: Key of an entry to keep in any case.
    """
    every = entries(folder)
    left = list(every)
    for entry in reversed(every):
        if sum(other.size_bytes for other in left) <= limit_bytes:
            break
        with suppress(OSError):
            if entry.key != kept and remove(folder, entry.key):
                left.remove(entry)
    if len(left) < len(every):
        _forget(folder, {str(entry.about.get("content")) for entry in left})


def mark_used(file: Path) -> None:
    """Record that a prepared model is used now; a cache that cannot be written records nothing."""
    with suppress(OSError):
        os.utime(file, ns=(time.time_ns(), file.stat().st_mtime_ns))


def _folders(folder: Path) -> Iterator[Path]:
    try:
        yield from (path for path in folder.iterdir() if KEY.fullmatch(path.name))
    except FileNotFoundError:
        return


def _empty(path: Path) -> None:
    """Remove a folder whose lock is held; a process that waits for the lock may make it again."""
    for file in path.iterdir():
        if file.name != LOCK:
            file.unlink(missing_ok=True)
    (path / LOCK).unlink(missing_ok=True)
    with suppress(OSError):
        path.rmdir()


def _forget(folder: Path, contents: Collection[str]) -> None:
    """Remove the notes on models, except those with one of these digests."""
    for file in (folder / KNOWN).glob("*.*"):
        digest = _json(file.with_suffix(".json")).get("digest")
        if file.suffix in NOTES and digest not in contents:
            file.unlink(missing_ok=True)


def _entry(path: Path) -> Entry | None:
    """Read an entry from its folder; None if the folder disappears meanwhile."""
    try:
        facts = {file.name: file.stat() for file in path.iterdir()}
        used_ns = facts[FILE].st_atime_ns if FILE in facts else path.stat().st_mtime_ns
    except FileNotFoundError:
        return None
    size_bytes = sum(fact.st_size for fact in facts.values())
    return Entry(path.name, size_bytes, used_ns, FILE in facts, _json(path / ABOUT))


def _json(path: Path) -> dict[str, object]:
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}
