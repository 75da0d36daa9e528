"""Secret of the driver, kept for the next driver of the same user."""

import fcntl
import os
import stat
from pathlib import Path

from tightship.resource.private_folder import private, refuse_others

SECRET_BYTES = 32


def kept_secret(folder: Path) -> bytes:
    """Return the secret in a private folder, created if it is not there.

    Drivers that start at the same time get the same secret.

    Raises:
        InputError: The folder or the file is not this user's own, or others can read it.
        OSError: It cannot be read or written.
    """
    folder.parent.mkdir(parents=True, exist_ok=True)
    path = private(folder) / "secret"
    place = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        fcntl.flock(place, fcntl.LOCK_EX)  # so that only one driver replaces a truncated secret
        found = _read(path)
        while found is None:
            _make(path)
            found = _read(path)
        return found
    finally:
        os.close(place)


def _read(path: Path) -> bytes | None:
    """Return the contents of the file, if it exists; remove a truncated one."""
    try:
        file = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except FileNotFoundError:
        return None
    with open(file, "rb") as opened:
        facts = os.fstat(file)
        refuse_others(path, facts, stat.S_ISREG(facts.st_mode))
        found = opened.read(SECRET_BYTES + 1)
    if len(found) == SECRET_BYTES:
        return found
    path.unlink(missing_ok=True)
    return None


def _make(path: Path) -> None:
    """Write a new file and link it to the path, unless another driver was faster."""
    draft = path.with_name(f"secret.{os.urandom(8).hex()}")
    file = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    try:
        with open(file, "wb") as opened:
            opened.write(os.urandom(SECRET_BYTES))
            opened.flush()
            os.fsync(file)
        os.link(draft, path)
    except FileExistsError:
        pass
    finally:
        draft.unlink()
