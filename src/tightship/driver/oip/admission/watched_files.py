"""Files of an operator that are read again when they have changed."""

import os
import stat
from collections.abc import Sequence
from pathlib import Path
from time import monotonic

from tightship.errors import InputError

PERIOD_S = 1.0
"""Least seconds between two looks at a file."""
BYTES_MAX = 1 << 20
"""Most bytes of a file: of tokens, or of certificates."""
_OTHERS_WRITE, _OTHERS_READ = stat.S_IWOTH, stat.S_IROTH


class WatchedFiles:
    """Notices that files were written or replaced, also by way of symbolic links."""

    def __init__(self, paths: Sequence[Path]) -> None:
        """Watch files from their present state on."""
        self._paths = tuple(paths)
        self._known = self._states()
        self._next_s = monotonic() + PERIOD_S

    def have_changed(self) -> bool:
        """Whether they differ from the last look, at most once a period."""
        now_s = monotonic()
        if now_s < self._next_s:
            return False
        self._next_s = now_s + PERIOD_S
        before, self._known = self._known, self._states()
        return self._known != before

    def look_again(self) -> None:
        """Take the files for changed in the next look, because reading them failed."""
        self._known = []

    def _states(self) -> list[tuple[int, int, int]]:
        return [_state(path) for path in self._paths]


def _state(path: Path) -> tuple[int, int, int]:
    """Return what changes with a file: its number, its size and its time; zeros without a file."""
    try:
        found = path.stat()
    except OSError:
        return 0, 0, 0
    return found.st_ino, found.st_size, found.st_mtime_ns


def read_small(path: Path, what: str) -> bytes:
    """Read a file of an operator.

    Args:
        path: The file, a regular one.
        what: What it is, for errors.

    Raises:
        InputError: It cannot be read, is not a regular file, or is too large.
    """
    try:
        # Without waiting, because to open a pipe would wait for its writer.
        with open(path, "rb", opener=_without_waiting) as file:
            if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                raise InputError(f"{what} `{path}` is not a regular file; name a file.")
            found = file.read(BYTES_MAX + 1)
    except OSError as error:
        raise InputError(f"{what} `{path}` cannot be read: {error.strerror}.") from None
    if len(found) > BYTES_MAX:
        raise InputError(f"{what} `{path}` has more than {BYTES_MAX >> 20} MiB.")
    return found


def check_secret(path: Path, what: str) -> str | None:
    """Check that other users cannot write a secret file.

    Returns:
        A warning if they can read it, else None.

    Raises:
        InputError: They can write it, or it does not exist.
    """
    try:
        mode = path.stat().st_mode
    except OSError as error:
        raise InputError(f"{what} `{path}` cannot be read: {error.strerror}.") from None
    if mode & _OTHERS_WRITE:
        raise InputError(
            f"{what} `{path}` can be written by every user of this system; `chmod 600` it."
        )
    if mode & _OTHERS_READ:
        return f"{what} `{path}` can be read by every user of this system; `chmod 600` it."
    return None


def _without_waiting(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_NONBLOCK)
