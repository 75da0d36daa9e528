"""Makes each entry of the cache once, in the first process that needs it; others read it."""

import json
import os
from collections.abc import Callable, Mapping
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import NamedTuple, TypeVar

from tightship.errors import FormatError
from tightship.prepared_cache.entries import ABOUT, DRAFT, FILE, LOCK, mark_used, trim
from tightship.prepared_cache.lock import locked, locked_if_free
from tightship.prepared_cache.trust import (
    PRIVATE_FILE,
    PRIVATE_FOLDER,
    UnusableCacheError,
    check_trusted,
)
from tightship.quantity import format_bytes
from tightship.sha256 import hexdigest

ATTEMPTS = 4
"""Attempts to read an entry, which may be evicted, or found corrupt, after it was made."""

Read = TypeVar("Read")


class About(NamedTuple):
    """The facts that identify an entry.

    Attributes:
        content: Digest of the model's bytes.
        size_bytes: Size of the model in bytes; an entry takes about as much.
        facts: All other facts that the prepared model depends on.
        model: Path at which the model was found first; shown to users, not part of the key.
    """

    content: str
    size_bytes: int
    facts: Mapping[str, str]
    model: str

    @property
    def key(self) -> str:
        """Name of the entry."""
        facts = json.dumps([self.content, sorted(self.facts.items())])
        return hexdigest(facts.encode())


class PreparedCache(NamedTuple):
    """A folder of prepared models that takes at most `limit_bytes`, but for the newest entry."""

    folder: Path
    limit_bytes: int

    def open(self) -> None:
        """Make the folder if it is missing, and check that it belongs to this user alone.

        Raises:
            UnusableCacheError: The folder cannot be made, or other users can write it.
        """
        try:
            self.folder.mkdir(mode=PRIVATE_FOLDER, parents=True, exist_ok=True)
            check_trusted(self.folder)
        except OSError as error:
            raise _unusable(error, self.folder) from None

    def read(
        self, about: About, make: Callable[[Path], None], read: Callable[[Path], Read]
    ) -> Read:
        """Return the result of `read` on the entry; `make` writes the entry first if it is missing.

        If several processes need the entry at once, one makes it and the others wait. An entry
        that `read` refuses is removed and made again.

        Args:
            about: The facts that identify the entry.
            make: Writes a prepared model to the path it is given.
            read: Loads a prepared model; raises `FormatError` if the file is corrupt or stale.

        Raises:
            UnusableCacheError: The entry can neither be read nor made.
        """
        if about.size_bytes > self.limit_bytes:
            raise UnusableCacheError(
                f"the model has {format_bytes(about.size_bytes)}, and the cache holds at most "
                f"{format_bytes(self.limit_bytes)}; raise TIGHTSHIP_CACHE_SIZE"
            )
        path = self.folder / about.key
        refused: FormatError | None = None
        for _ in range(ATTEMPTS):
            found = _inode(path)
            if found is None:
                self._make_if_missing(path, about, make)
                found = _inode(path)
            try:
                result = read(path / FILE)
            except FileNotFoundError:
                continue
            except FormatError as error:
                refused = error
                _discard(path, found)
                continue
            mark_used(path / FILE)
            return result
        raise UnusableCacheError(
            f"`{path}` was removed {ATTEMPTS} times while it was read"
            if refused is None
            else str(refused)
        )

    def holds(self, about: About) -> bool:
        """Whether there is an entry, which may be refused when it is read."""
        return (self.folder / about.key / FILE).exists()

    def find(self, about: About, read: Callable[[Path], Read]) -> Read | None:
        """Return the result of `read` on the entry; None if there is none, or `read` refuses it.

        Nothing waits for other processes. An entry that `read` refuses is removed.

        Args:
            about: The facts that identify the entry.
            read: Loads a prepared model; raises `FormatError` if the file is corrupt or stale.

        Raises:
            UnusableCacheError: Other users own or may write the folder, or the entry.
        """
        path = self.folder / about.key
        try:
            check_trusted(self.folder)
            found = _inode(path)
            if found is None:
                return None
            result = read(path / FILE)
        except FormatError:
            _discard(path, found)
            return None
        except OSError:
            return None
        mark_used(path / FILE)
        return result

    def add(self, about: About, make: Callable[[Path], None]) -> bool:
        """Write the entry unless there is one, or another process makes it; return whether.

        Args:
            about: The facts that identify the entry.
            make: Writes a prepared model to the path it is given.

        Raises:
            UnusableCacheError: The entry cannot be written.
        """
        self.open()
        path = self.folder / about.key
        try:
            path.mkdir(mode=PRIVATE_FOLDER, exist_ok=True)
            with locked_if_free(path / LOCK) as is_ours:
                is_made = is_ours and not (path / FILE).exists()
                if is_made:
                    _make(path, about, make)
            if is_made:
                trim(self.folder, self.limit_bytes, about.key)
        except FileNotFoundError:
            return False  # removed by another process before it was locked
        except OSError as error:
            raise _unusable(error, path) from None
        return is_made

    def _make_if_missing(self, path: Path, about: About, make: Callable[[Path], None]) -> None:
        try:
            path.mkdir(mode=PRIVATE_FOLDER, exist_ok=True)
            with locked(path / LOCK):
                if not (path / FILE).exists():
                    _make(path, about, make)
            trim(self.folder, self.limit_bytes, about.key)
        except FileNotFoundError:
            return  # removed by another process before it was locked
        except OSError as error:
            raise _unusable(error, path) from None


def _make(path: Path, about: About, make: Callable[[Path], None]) -> None:
    """Write an entry; files that a crashed process left are removed first."""
    _remove_unfinished(path)
    draft = path / DRAFT
    with ExitStack() as unless_made:
        unless_made.callback(_remove_unfinished, path)
        make(draft)
        draft.chmod(PRIVATE_FILE)
        said = {"model": about.model, "content": about.content, **about.facts}
        (path / ABOUT).write_text(json.dumps(said), encoding="utf-8")
        (path / ABOUT).chmod(PRIVATE_FILE)
        draft.replace(path / FILE)  # last, because an entry with this file counts as complete
        unless_made.pop_all()


def _remove_unfinished(path: Path) -> None:
    """Remove all files of an entry that is not complete, drafts of ended processes too."""
    with suppress(FileNotFoundError):  # the entry itself may be removed
        for file in path.iterdir():
            if file.name != LOCK:
                file.unlink(missing_ok=True)


def _inode(path: Path) -> int | None:
    """Return the inode of the entry's file; None if there is no entry.

    Raises:
        UnusableCacheError: Other users may have written the file.
    """
    try:
        check_trusted(path)
        return check_trusted(path / FILE).st_ino
    except FileNotFoundError:
        return None
    except OSError as error:
        raise _unusable(error, path) from None


def _discard(path: Path, inode: int | None) -> None:
    """Remove the file that was refused, but no other file that has replaced it meanwhile."""
    try:
        with locked(path / LOCK):
            if _inode(path) == inode:
                (path / FILE).unlink(missing_ok=True)
    except OSError as error:
        raise _unusable(error, path) from None


def _unusable(error: OSError, path: Path) -> UnusableCacheError:
    where = path if error.filename is None else os.fspath(error.filename)
    return UnusableCacheError(f"`{where}`: {error.strerror or error}")  # own ones have no number
