"""A large file that is there whole or not at all, written a piece at a time."""

import contextlib
import fcntl
import os
from collections.abc import Iterator
from errno import EEXIST, EISDIR, ENOENT
from pathlib import Path
from typing import BinaryIO


@contextlib.contextmanager
def draft(path: Path) -> Iterator[BinaryIO]:
    """A new file that takes the name `path` at the end of the `with` block.

    It has another name in the same folder until then, is locked while it is written, and reaches
    the disk before it is renamed. Where the block raises, it is removed; one that a process left
    which ended meanwhile is removed by the next draft for the same path.

    Raises:
        OSError: The folder does not exist or cannot be written; the old file is untouched.
    """
    target = path.resolve()
    if not target.parent.is_dir():
        raise FileNotFoundError(ENOENT, "The folder to write into does not exist", str(path))
    if target.is_dir():
        raise IsADirectoryError(EISDIR, "A file is to be written, and a folder is there", str(path))
    if target.exists() and not target.is_file():
        raise FileExistsError(EEXIST, "What is there is a device or a pipe, and no file", str(path))
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
    """A new file with a name of its own, which nobody takes for abandoned."""
    number = 0
    while True:
        name = target.with_name(f"{_pattern(target)}{os.getpid()}-{number}.draft")
        number += 1
        try:
            file = name.open("x+b")
        except FileExistsError:
            continue
        except OSError as error:  # the draft's name is nobody's
            raise OSError(error.errno, error.strerror, str(target)) from None
        with file:
            fcntl.flock(file, fcntl.LOCK_EX)
            if _is_at(name, file):  # not taken for abandoned before it was locked
                yield file
                return


def _is_at(name: Path, file: BinaryIO) -> bool:
    try:
        return os.path.samestat(name.stat(), os.fstat(file.fileno()))
    except FileNotFoundError:
        return False


def _remove_abandoned(target: Path) -> None:
    """Remove drafts for a path that nobody has locked."""
    for entry in target.parent.iterdir():
        if entry.name.startswith(_pattern(target)) and entry.name.endswith(".draft"):
            with contextlib.suppress(OSError), entry.open("rb") as file:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                entry.unlink()


def _sync_folder(folder: Path) -> None:
    """Have the new name reach the disk too."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
