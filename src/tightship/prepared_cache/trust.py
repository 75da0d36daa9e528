"""Decides whose files are trusted: a prepared model decides what a process computes."""

import os
import stat
from pathlib import Path

from tightship.errors import TightshipError

PRIVATE_FOLDER = 0o700
PRIVATE_FILE = 0o600
ROOT = 0
WRITABLE_BY_OTHERS = stat.S_IWGRP | stat.S_IWOTH


class UnusableCacheError(TightshipError):
    """The folder of prepared models cannot be used; the text is a reason that follows a colon."""


def check_trusted(path: Path) -> os.stat_result:
    """Raise an error if users other than this one and root own a file or may write it.

    Returns:
        The status of the file.

    Raises:
        UnusableCacheError: Other users own or may write the file, or it is a symbolic link.
        OSError: The status cannot be read.
    """
    found = path.lstat()
    if stat.S_ISLNK(found.st_mode):
        raise UnusableCacheError(f"`{path}` is a symbolic link, which is not followed")
    if found.st_uid not in {os.geteuid(), ROOT}:
        raise UnusableCacheError(
            f"`{path}` belongs to user {found.st_uid}, and this process to user {os.geteuid()}"
        )
    if found.st_mode & WRITABLE_BY_OTHERS:
        raise UnusableCacheError(
            f"`{path}` can be written by others (mode {stat.S_IMODE(found.st_mode):o}, needed "
            f"{PRIVATE_FOLDER:o})"
        )
    return found
