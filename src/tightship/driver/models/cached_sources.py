"""Source files of a cached model, and whether they have changed since.

Files of trusted folders are mapped while a model is prepared and may change later. Sealed files
cannot change, and other files were copied; neither is recorded.
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
"""Age of a file's last change from which a further change is certain to alter its times."""


@dataclass(frozen=True, slots=True)
class Source:
    """File of a trusted folder.

    Attributes:
        facts: Device, inode, size, and times of change of contents and of inode.
        digest: Digest of the contents if the times are too recent to reveal a change; else empty.
    """

    path: str
    facts: tuple[int, ...]
    digest: str = ""

    def is_current(self) -> bool:
        """Whether the file is there and unchanged."""
        try:
            is_same = _facts(os.stat(self.path)) == self.facts
            return is_same and (not self.digest or _digest(self.path) == self.digest)
        except OSError:
            return False


class Sources:
    """Files that a model is about to be read from."""

    def __init__(self, pools: Sequence[Pool]) -> None:
        """Record the files of `pools` in trusted folders as they are now.

        Raises:
            OSError: A file cannot be inspected.
        """
        trusted = [
            pool.handle
            for pool in pools
            if pool.mode is PoolMode.SEALED and not seals_of(pool.handle) & fcntl.F_SEAL_SHRINK
        ]
        self._files = [_source(os.readlink(f"/proc/self/fd/{file}")) for file in trusted]

    def noted(self) -> bytes | None:
        """Encode the record for `are_current` after reading; None if a file has changed."""
        if not all(source.is_current() for source in self._files):
            return None
        return json.dumps([[each.path, each.facts, each.digest] for each in self._files]).encode()


def are_current(noted: bytes) -> bool:
    """Whether all recorded files are there and unchanged."""
    return all(
        Source(path, tuple(facts), digest).is_current() for path, facts, digest in json.loads(noted)
    )


def _source(path: str) -> Source:
    """Record a file as it is now.

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
