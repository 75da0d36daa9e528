"""Files that a cached model was read from: whether they still are what they were.

A file of a trusted folder is mapped while a model is prepared, and may hold another the next day.
A sealed file cannot, and of any other a copy was read: of those nothing is kept.
"""

import fcntl
import hashlib
import json
import os
import time
from collections.abc import Sequence
from dataclasses import dataclass

from tightship.driver.memory.descriptor import seals_of
from tightship.driver.types.pools import Pool, PoolMode

SETTLED_NS = 2_000_000_000
"""Age of a change from which on another one changes the times of a file for certain."""


@dataclass(frozen=True, slots=True)
class Source:
    """A file of a trusted folder.

    Attributes:
        facts: Device, inode, size, and times of change of content and of inode.
        digest: Of its content where its times are too new to tell of a change; else empty.
    """

    path: str
    facts: tuple[int, ...]
    digest: str = ""

    def is_current(self) -> bool:
        """Whether it is there, and holds what it held."""
        try:
            is_same = _facts(os.stat(self.path)) == self.facts
            return is_same and (not self.digest or _digest(self.path) == self.digest)
        except OSError:
            return False


class Sources:
    """The files that a model is about to be read from."""

    def __init__(self, pools: Sequence[Pool]) -> None:
        """As they are now; `pools` are those that the model names.

        Raises:
            OSError: One cannot be asked.
        """
        trusted = [
            pool.handle
            for pool in pools
            if pool.mode is PoolMode.SEALED and not seals_of(pool.handle) & fcntl.F_SEAL_SHRINK
        ]
        self._files = [_source(os.readlink(f"/proc/self/fd/{file}")) for file in trusted]

    def noted(self) -> bytes | None:
        """What `are_current` reads, once the model has been read; None if a file has changed."""
        if not all(source.is_current() for source in self._files):
            return None
        return json.dumps([[each.path, each.facts, each.digest] for each in self._files]).encode()


def are_current(noted: bytes) -> bool:
    """Whether all files that were noted are there, and hold what they held."""
    return all(
        Source(path, tuple(facts), digest).is_current() for path, facts, digest in json.loads(noted)
    )


def _source(path: str) -> Source:
    """A file as it is now.

    Raises:
        OSError: It cannot be read.
    """
    facts = _facts(os.stat(path))
    is_settled = max(facts[3:]) + SETTLED_NS < time.time_ns()
    return Source(path, facts, "" if is_settled else _digest(path))


def _facts(found: os.stat_result) -> tuple[int, ...]:
    return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns


def _digest(path: str) -> str:
    with open(path, "rb", buffering=0) as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
