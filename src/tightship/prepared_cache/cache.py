"""An entry is made once, whoever comes first, and read by all."""

import hashlib
import json
import os
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from tightship.errors import FormatError
from tightship.prepared_cache.entries import ABOUT, DRAFT, FILE, LOCK, mark_used, trim
from tightship.prepared_cache.lock import locked
from tightship.prepared_cache.trust import (
    PRIVATE_FILE,
    PRIVATE_FOLDER,
    UnusableCacheError,
    check_trusted,
)
from tightship.quantity import format_bytes

ATTEMPTS = 4
"""An entry may be evicted, or found corrupt, between making and reading it."""

Read = TypeVar("Read")


@dataclass(frozen=True, slots=True)
class About:
    """What an entry is made from.

    Attributes:
        content: Digest of the model's bytes.
        size_bytes: Of those bytes: an entry takes about as much.
        facts: All else that it depends on.
        model: Where the model was found first; said to people, not part of the key.
    """

    content: str
    size_bytes: int
    facts: Mapping[str, str]
    model: str

    @property
    def key(self) -> str:
        """Name of the entry."""
        facts = json.dumps([self.content, sorted(self.facts.items())])
        return hashlib.sha256(facts.encode()).hexdigest()


@dataclass(frozen=True, slots=True)
class PreparedCache:
    """A folder of prepared models that takes at most `limit_bytes`, but for the newest entry."""

    folder: Path
    limit_bytes: int

    def open(self) -> None:
        """Make the folder, if it is not there, and see that it is only this user's.

        Raises:
            UnusableCacheError: It cannot be made, or others can write it.
        """
        try:
            self.folder.mkdir(mode=PRIVATE_FOLDER, parents=True, exist_ok=True)
            check_trusted(self.folder)
        except OSError as error:
            raise _unusable(error, self.folder) from None

    def read(
        self, about: About, make: Callable[[Path], None], read: Callable[[Path], Read]
    ) -> Read:
        """What `read` makes of the entry; `make` writes it first if there is none.

        Of processes that come at once one makes it, and the others wait. An entry that `read`
        refuses is removed and made anew.

        Args:
            about: What the entry is made from.
            make: Writes a prepared model to the path it is given.
            read: Loads one; raises `FormatError` for a file that is corrupt or stale.

        Raises:
            UnusableCacheError: The entry can neither be read nor made.
        """
        if about.size_bytes > self.limit_bytes:
            raise UnusableCacheError(
                f"the model has {format_bytes(about.size_bytes)}, and the cache holds "
                f"{format_bytes(self.limit_bytes)}; set TIGHTSHIP_CACHE_SIZE to more"
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
            f"`{path}` was removed again and again" if refused is None else str(refused)
        )

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
    """Write an entry; what a maker that died has left is removed first."""
    for file in path.iterdir():
        if file.name != LOCK:
            file.unlink()
    draft = path / DRAFT
    with ExitStack() as unless_made:
        unless_made.callback(draft.unlink, missing_ok=True)
        make(draft)
        draft.chmod(PRIVATE_FILE)
        said = {"model": about.model, "content": about.content, **about.facts}
        (path / ABOUT).write_text(json.dumps(said), encoding="utf-8")
        (path / ABOUT).chmod(PRIVATE_FILE)
        draft.replace(path / FILE)
        unless_made.pop_all()


def _inode(path: Path) -> int | None:
    """Which file the entry is; None where there is none.

    Raises:
        UnusableCacheError: Others may have written it.
    """
    try:
        check_trusted(path)
        return check_trusted(path / FILE).st_ino
    except FileNotFoundError:
        return None
    except OSError as error:
        raise _unusable(error, path) from None


def _discard(path: Path, inode: int | None) -> None:
    """Remove the file that was refused, and no other that has come in its place."""
    try:
        with locked(path / LOCK):
            if _inode(path) == inode:
                (path / FILE).unlink(missing_ok=True)
    except OSError as error:
        raise _unusable(error, path) from None


def _unusable(error: OSError, path: Path) -> UnusableCacheError:
    where = path if error.filename is None else os.fspath(error.filename)
    return UnusableCacheError(f"`{where}`: {error.strerror}")
