"""A lock that is a file: held by one process at a time, released by the kernel when it dies."""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tightship.prepared_cache.trust import PRIVATE_FILE


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Hold the lock; waits for whoever has it. The file is made, and stays.

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
    """Hold the lock if nobody else does; whether it is held.

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
    """An open file that is locked, and still the one of this name: its holder may remove it."""
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
    """Unlocked by name, as a child that was forked meanwhile has the same open file."""
    fcntl.flock(descriptor, fcntl.LOCK_UN)
    os.close(descriptor)
