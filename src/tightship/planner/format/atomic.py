"""Files that are there whole or not at all."""

import os
from errno import EISDIR, ENOENT
from pathlib import Path


def write_text(path: Path, text: str) -> None:
    """`write_bytes` of a text in UTF-8.

    Raises:
        OSError: The folder does not exist or cannot be written; the old file is untouched.
    """
    write_bytes(path, text.encode())


def write_bytes(path: Path, content: bytes) -> None:
    """Write a file so that a reader finds the old content or the new, nothing between.

    The content goes to a new file in the same folder, which then takes the name. What is no regular
    file (a terminal, a pipe) is written to directly.

    Raises:
        OSError: The folder does not exist or cannot be written; the old file is untouched.
    """
    target = path.resolve()
    if not target.parent.is_dir():
        raise FileNotFoundError(ENOENT, "The folder to write into does not exist", str(path))
    if target.is_dir():
        raise IsADirectoryError(EISDIR, "A file is to be written, and a folder is there", str(path))
    if target.exists() and not target.is_file():
        target.write_bytes(content)
        return
    draft = target.with_name(f".{target.name}.{os.getpid()}.tmp")
    try:
        with draft.open("xb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        draft.replace(target)
    except OSError as error:
        raise OSError(error.errno, error.strerror, str(path)) from None  # the draft is nobody's
    finally:
        draft.unlink(missing_ok=True)
