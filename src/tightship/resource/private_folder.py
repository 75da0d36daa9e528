"""Private folder of a user, for files that the user's processes share while they run."""

import os
import stat
from collections.abc import Mapping
from pathlib import Path

from tightship.errors import InputError


def runtime_folder(environment: Mapping[str, str] | None = None) -> Path:
    """Return `tightship` in `XDG_RUNTIME_DIR`, else a folder in shared or temporary memory.

    Raises:
        InputError: The folder is not the user's own, or others can enter it.
    """
    given = os.environ if environment is None else environment
    base = Path(given.get("XDG_RUNTIME_DIR", ""))
    if base.is_absolute() and base.is_dir():
        return private(base / "tightship")
    memory = Path("/dev/shm")
    if not memory.is_dir():
        from tempfile import gettempdir  # imports much that few processes need

        memory = Path(gettempdir())
    return private(memory / f"tightship-{os.geteuid()}")


def private(folder: Path) -> Path:
    """Return the folder, made if needed, that only this user can enter.

    Raises:
        InputError: The folder is not the user's own, others can enter it, or it cannot be made.
    """
    try:
        folder.mkdir(mode=0o700, exist_ok=True)
        found = folder.lstat()
    except OSError as error:
        raise InputError(
            f"The folder `{folder}` cannot be made: {error.strerror}. Name another one."
        ) from None
    refuse_others(folder, found, stat.S_ISDIR(found.st_mode))
    return folder


def refuse_others(path: Path, found: os.stat_result, is_kind: bool) -> None:  # noqa: FBT001
    """Check that a path is of its kind, this user's own, and closed to others.

    Raises:
        InputError: The path is not.
    """
    if not is_kind or found.st_uid != os.geteuid() or found.st_mode & 0o077:
        raise InputError(
            f"`{path}` must be this user's own, of mode 0700 (a file: 0600), and no link; it has "
            f"owner {found.st_uid} and mode {stat.S_IMODE(found.st_mode):04o}. Remove it, or name "
            "another folder."
        )
