"""Reads from the environment where a user's caches are, and how much they may hold."""

import os
from pathlib import Path

from tightship.errors import InputError
from tightship.prepared_cache.trust import UnusableCacheError
from tightship.quantity import parse_bytes

FOLDER = "TIGHTSHIP_CACHE_DIR"
SIZE = "TIGHTSHIP_CACHE_SIZE"
KEEP = "TIGHTSHIP_KEEP_PROGRAMS"
SIZE_BYTES = 8 << 30
"""Default limit of prepared models, in bytes."""


def user_folder() -> Path:
    """Return the folder `tightship` below the user's caches (`XDG_CACHE_HOME`, or `~/.cache`).

    Raises:
        UnusableCacheError: The user has no home folder.
    """
    folder = os.environ.get("XDG_CACHE_HOME")
    try:
        return (Path(folder) if folder else Path.home() / ".cache") / "tightship"
    except RuntimeError:
        raise UnusableCacheError(
            "This user has no home folder; set XDG_CACHE_HOME to a folder to keep caches in."
        ) from None


def cache_folder() -> Path:
    """Return the folder of prepared models, with symbolic links resolved.

    Raises:
        UnusableCacheError: As `user_folder`.
    """
    chosen = os.environ.get(FOLDER)
    return Path(os.path.realpath(chosen or user_folder() / "prepared"))


def cache_size_bytes() -> int:
    """Return the most bytes that prepared models may take on disk.

    Raises:
        InputError: The environment variable is not an amount of memory.
    """
    try:
        return parse_bytes(os.environ.get(SIZE) or SIZE_BYTES)
    except InputError as error:
        raise InputError(f"{SIZE}: {error}") from None


def keeps_programs() -> bool:
    """Whether programs of GGUF files are kept for later processes.

    Raises:
        InputError: The environment variable is neither 0 nor 1.
    """
    chosen = os.environ.get(KEEP) or "1"
    if chosen not in ("0", "1"):
        raise InputError(f"{KEEP} is `{chosen}`; it must be 0 or 1.")
    return chosen == "1"
