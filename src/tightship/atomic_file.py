"""Writes files atomically: a reader finds the old content or the new, never a mixture."""

import contextlib
import fcntl
import os
from collections.abc import Iterator
from errno import EEXIST, EISDIR, ENOENT
from pathlib import Path
from typing import BinaryIO


def write_text(path: Path, text: str) -> None:
    """Write a text in UTF-8 as `write_bytes` does.

    Raises:
        OSError: The folder does not exist or cannot be written; the old file is untouched.
    """
    write_bytes(path, text.encode())


def write_bytes(path: Path, content: bytes) -> None:
    """Replace a file by one with this content.

    A path that is not a regular file (a terminal, a pipe) is written directly.

    Args:
        path: The file; a symbolic link is followed.
        content: Its new content.

    Raises:
        OSError: The folder does not exist or cannot be written; the old file is untouched.
    """
    target = path.resolve()
    if target.exists() and not (target.is_file() or target.is_dir()):
        target.write_bytes(content)
        return
    try:
        with draft(path) as file:
            file.write(content)
    except OSError as error:
        # Name the file that the caller gave: the draft's name would mean nothing to the user.
        raise OSError(error.errno, error.strerror, str(path)) from None


@contextlib.contextmanager
def draft(path: Path) -> Iterator[BinaryIO]:
    """Open a new file that takes the name `path` at the end of the `with` block.

    Until then the file has another name in the same folder. It is locked while it is written, and
    its content reaches the disk before it is renamed, or a crash could leave an empty file. If the
    block raises, the file is removed; the next draft for the same path removes one that an ended
    process has left.

    Args:
        path: The file; a symbolic link is followed.

    Raises:
        OSError: The folder does not exist or cannot be written; the old file is untouched.
    """
    target = path.resolve()
    if not target.parent.is_dir():
        raise FileNotFoundError(ENOENT, "The folder to write into does not exist", str(path))
    if target.is_dir():
        raise IsADirectoryError(EISDIR, "Cannot write a file over a folder", str(path))
    if target.exists() and not target.is_file():
        raise FileExistsError(EEXIST, "Cannot replace a device or a pipe by a file", str(path))
    _remove_abandoned(target)
    with _locked(target) as file, contextlib.ExitStack() as unless_whole:
        name = Path(file.name)
        unless_whole.callback(name.unlink, missing_ok=True)
        yield file
        file.flush()
        os.fsync(file.fileno())
        name.replace(target)
        unless_whole.pop_all()
    _sync_folder(target.parent)


def _pattern(target: Path) -> str:
    return f".{target.name}."


@contextlib.contextmanager
def _locked(target: Path) -> Iterator[BinaryIO]:
    """Open a new file under an unused name and lock it, so that no other draft removes it."""
    number = 0
    while True:
        name = target.with_name(f"{_pattern(target)}{os.getpid()}-{number}.draft")
        number += 1
        try:
            file = name.open("x+b")
        except FileExistsError:
            continue
        except OSError as error:  # the draft's name would mean nothing to the user
            raise OSError(error.errno, error.strerror, str(target)) from None
        with file:
            fcntl.flock(file, fcntl.LOCK_EX)
            if _is_at(name, file):  # another draft may have removed it before it was locked
                yield file
                return


def _is_at(name: Path, file: BinaryIO) -> bool:
    try:
        return os.path.samestat(name.stat(), os.fstat(file.fileno()))
    except FileNotFoundError:
        return False


def _remove_abandoned(target: Path) -> None:
    """Remove drafts for a path that no process has locked."""
    for entry in target.parent.iterdir():
        if entry.name.startswith(_pattern(target)) and entry.name.endswith(".draft"):
            with contextlib.suppress(OSError), entry.open("rb") as file:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                if _is_at(entry, file):  # else it was finished, and a new draft has its name
                    entry.unlink()


def _sync_folder(folder: Path) -> None:
    """Wait until the new name has reached the disk too."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
