"""Writes files atomically: a reader finds the old content or the new."""

import os
from errno import EISDIR, ENOENT
from pathlib import Path


def write_text(path: Path, text: str) -> None:
    """Write a text in UTF-8 as `write_bytes` does.

    Raises:
        OSError: The folder does not exist or cannot be written; the old file is untouched.
    """
    write_bytes(path, text.encode())


def write_bytes(path: Path, content: bytes) -> None:
    """Replace a file atomically: a reader finds the old content or the new, never a mixture.

    The content goes to a new file in the same folder, which then takes the name. A path that is not
    a regular file (a terminal, a pipe) is written directly.

    Args:
        path: The file; a symbolic link is followed.
        content: Its new content.

    Raises:
        OSError: The folder does not exist or cannot be written; the old file is untouched.
    """
    target = path.resolve()
    if not target.parent.is_dir():
        raise FileNotFoundError(ENOENT, "The folder to write into does not exist", str(path))
    if target.is_dir():
        raise IsADirectoryError(EISDIR, "Cannot write a file over a folder", str(path))
    if target.exists() and not target.is_file():
        target.write_bytes(content)
        return
    draft = target.with_name(f".{target.name}.{os.getpid()}.tmp")
    try:
        with draft.open("xb") as file:
            file.write(content)
            file.flush()
            # The content must reach the disk before the name, or a crash could leave an empty file.
            os.fsync(file.fileno())
        draft.replace(target)
    except OSError as error:
        # Name the file that the caller gave: the draft's name would mean nothing to the user.
        raise OSError(error.errno, error.strerror, str(path)) from None
    finally:
        draft.unlink(missing_ok=True)
