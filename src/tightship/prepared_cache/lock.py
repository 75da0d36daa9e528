"""Locks a file: one process at a time holds it, and the kernel releases it when that dies."""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tightship.prepared_cache.trust import PRIVATE_FILE


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Hold the lock; wait for another process that holds it. The file is made, and stays.

    Raises:
        OSError: The file cannot be made or locked.
    """
    descriptor = _acquire(path, fcntl.LOCK_EX)
    try:
        yield
    finally:
        _release(descriptor)


@contextmanager
def locked_if_free(path: Path) -> Iterator[bool]:
    """Hold the lock if it is free, and yield whether it is held.

    Raises:
        OSError: The file cannot be made or locked.
    """
    try:
        descriptor = _acquire(path, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        yield False
        return
    try:
        yield True
    finally:
        _release(descriptor)


def _acquire(path: Path, operation: int) -> int:
    """Open and lock the file; repeat if its holder removed the file before the lock was granted."""
    while True:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, PRIVATE_FILE)
        try:
            fcntl.flock(descriptor, operation)
            if _is_at(path, descriptor):
                kept, descriptor = descriptor, -1
                return kept
        finally:
            if descriptor >= 0:
                os.close(descriptor)


def _is_at(path: Path, descriptor: int) -> bool:
    try:
        return os.path.samestat(os.fstat(descriptor), path.stat())
    except FileNotFoundError:
        return False


def _release(descriptor: int) -> None:
    """Unlock explicitly, because a child forked meanwhile shares the open file and its lock."""
    fcntl.flock(descriptor, fcntl.LOCK_UN)
    os.close(descriptor)
