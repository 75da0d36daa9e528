"""Trusted folders of the driver: their files may be mapped without seals."""

import os
import stat
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from tightship.errors import InputError

_OTHERS_WRITE = stat.S_IWGRP | stat.S_IWOTH
_SECTOR_BYTES = 512


@dataclass(frozen=True, slots=True)
class Trusted:
    """Trusted folders, by their real paths."""

    folders: tuple[Path, ...] = ()

    def holds(self, file: int) -> bool:
        """Whether a descriptor is a file in a trusted folder that only this user or root can write.

        The path from `/proc` is walked from the folder on, following no link, and must lead to the
        same file. Sparse files are excluded: reading a hole may need memory.
        """
        if not self.folders:
            return False
        found = os.fstat(file)
        if not stat.S_ISREG(found.st_mode) or not _is_own(found):
            return False
        if found.st_blocks * _SECTOR_BYTES < found.st_size:
            return False
        path = Path(os.readlink(f"/proc/self/fd/{file}"))
        for folder in self.folders:
            if path.is_relative_to(folder):
                with suppress(OSError):
                    return _leads_to(folder, path.relative_to(folder), found)
        return False


def trusted(folders: Iterable[Path]) -> Trusted:
    """Check folders and return them as trusted.

    Raises:
        InputError: One is not a folder, or others may write to it.
    """
    real = []
    for folder in folders:
        try:
            found = folder.stat()
        except OSError as error:
            raise InputError(f"`{folder}` cannot be trusted: {error.strerror}.") from None
        if not stat.S_ISDIR(found.st_mode) or not _is_own(found):
            raise InputError(
                f"`{folder}` cannot be trusted: it must be a folder of this user or root that "
                "no other user can write to."
            )
        real.append(folder.resolve())
    return Trusted(tuple(real))


def _is_own(found: os.stat_result) -> bool:
    return found.st_uid in {os.geteuid(), 0} and not found.st_mode & _OTHERS_WRITE


def _leads_to(folder: Path, rest: Path, wanted: os.stat_result) -> bool:
    """Whether a path below a folder is this file, and only this user or root owns the way there.

    Raises:
        OSError: The path does not exist or contains a link.
    """
    flags = os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC
    place = os.open(folder, flags | os.O_DIRECTORY)
    try:
        for part in rest.parts:
            if not _is_own(os.fstat(place)):
                return False
            inner = os.open(part, flags, dir_fd=place)
            os.close(place)
            place = inner
        return os.path.samestat(os.fstat(place), wanted)
    finally:
        os.close(place)
