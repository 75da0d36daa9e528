"""Identifies a model by a digest of its files, which is reused while the files stay the same."""

import contextlib
import json
import os
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import NamedTuple

from tightship.prepared_cache.entries import KNOWN
from tightship.prepared_cache.lock import locked
from tightship.prepared_cache.trust import (
    PRIVATE_FILE,
    PRIVATE_FOLDER,
    UnusableCacheError,
    check_trusted,
)
from tightship.sha256 import file_digest, hexdigest, sha256

FORMAT = "tightship.known.v1"
SETTLED_NS = 2_000_000_000
"""Age of a file's last change after which another change is certain to give another time stamp."""

Facts = tuple[int, int, int, int, int]


class Identity(NamedTuple):
    """A model by content.

    Attributes:
        digest: Digest of the bytes of its files in order; names do not matter.
        size_bytes: Total size of its files.
        files: Each file with device, inode, size, and times of change of content and of inode.
    """

    digest: str
    size_bytes: int
    files: tuple[tuple[Path, Facts], ...] = ()

    def is_current(self) -> bool:
        """Whether no file has been replaced or written since the digest was computed."""
        return all(_facts_if_there(path) == facts for path, facts in self.files)


def identify(model: Path, data_files: Callable[[], Iterable[Path]], folder: Path) -> Identity:
    """Return the identity of a model, from a note if its files are unchanged, otherwise computed.

    Processes that ask for the same model at once compute the digest once. If the note cannot be
    written, every call computes it.

    Args:
        model: Path of the model's own file.
        data_files: Returns further files with parts of the model; called only if there is no note.
        folder: Folder of the cache.

    Raises:
        OSError: A file of the model cannot be read.
    """
    model = Path(os.path.realpath(model))
    note = folder / KNOWN / f"{hexdigest(os.fsencode(model))}.json"
    known = _noted(note)
    if known is not None:
        return known
    try:
        note.parent.mkdir(mode=PRIVATE_FOLDER, exist_ok=True)
        with locked(note.with_suffix(".lock")):
            return _noted(note) or _computed(model, data_files, note)
    except OSError as error:
        if not Path(error.filename or "").is_relative_to(note.parent):
            raise
    return _computed(model, data_files, None)


def is_settled(facts: Facts, now_ns: int) -> bool:
    """Whether a change of a file from now on is certain to change its facts."""
    return max(facts[3:]) + SETTLED_NS < now_ns


def _computed(model: Path, data_files: Callable[[], Iterable[Path]], note: Path | None) -> Identity:
    started_ns = time.time_ns()
    files = tuple((path, _facts(path)) for path in (model, *data_files()))
    digest = sha256()
    for path, _ in files:
        with path.open("rb", buffering=0) as file:
            digest.update(file_digest(file))
    identity = Identity(digest.digest().hex(), _size(files), files)
    # A file that changed just now may change again within the resolution of its time stamps, and
    # the note would then vouch for other bytes.
    settled = all(is_settled(facts, started_ns) for _, facts in files)
    if note is not None and settled and identity.is_current():
        # A note saves time and nothing else: on a full disk, every call computes the digest.
        with contextlib.suppress(OSError):
            _write(note, identity)
    return identity


def _write(note: Path, identity: Identity) -> None:
    files = [[os.fspath(path), *facts] for path, facts in identity.files]
    text = json.dumps({"format": FORMAT, "digest": identity.digest, "files": files})
    draft = note.with_suffix(".draft")
    draft.unlink(missing_ok=True)
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, PRIVATE_FILE)
    try:
        with os.fdopen(descriptor, "w") as file:
            file.write(text)
        draft.replace(note)
    finally:
        draft.unlink(missing_ok=True)


def _noted(note: Path) -> Identity | None:
    """Read a note, if its file is trusted and the model's files still are as it says."""
    try:
        check_trusted(note)
        found = json.loads(note.read_text(encoding="utf-8"))
        if found["format"] != FORMAT:
            return None
        files = tuple((Path(path), _five(facts)) for path, *facts in found["files"])
        identity = Identity(str(found["digest"]), _size(files), files)
    except (UnusableCacheError, OSError, ValueError, KeyError, TypeError):
        return None
    return identity if files and identity.is_current() else None


def _size(files: Iterable[tuple[Path, Facts]]) -> int:
    return sum(size_bytes for _, (_, _, size_bytes, _, _) in files)


def _five(numbers: Iterable[int]) -> Facts:
    device, inode, size_bytes, content_ns, inode_ns = numbers
    return device, inode, size_bytes, content_ns, inode_ns


def _facts(path: Path) -> Facts:
    found = path.stat()
    return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns


def _facts_if_there(path: Path) -> Facts | None:
    try:
        return _facts(path)
    except OSError:
        return None
