"""Files that were built of a commit, kept so that a test that fails does not cost the builds."""

import shutil
from collections.abc import Callable
from pathlib import Path

from release.commands import announce


def kept(folder: Path, pattern: str, build: Callable[[], Path]) -> Path:
    """Return the file of a folder that fits a pattern, which is built elsewhere if it is missing.

    Args:
        folder: Where the file stays; it is there whole or not at all.
        pattern: Pattern of its name, as for `Path.glob`.
        build: Builds and checks the file, and returns its path.
    """
    found = sorted(folder.glob(pattern))
    if found:
        announce(f"go on with {found[0].name}, built before")
        return found[0]
    built = build()
    part = folder / f"{built.name}.part"
    shutil.move(built, part)
    return part.rename(folder / built.name)
