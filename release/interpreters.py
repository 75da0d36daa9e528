"""Python interpreters of a machine, by version."""

import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

from release.commands import ReleaseError

ASK = "import sys; print('%d.%d' % sys.version_info[:2])"


def interpreter(version: str) -> Path:
    """Find an interpreter of a version such as `3.12`.

    Raises:
        ReleaseError: Neither the path nor pyenv has one.
    """
    for candidate in candidates(version):
        if answered(candidate) == version:
            return candidate
    raise ReleaseError(
        f"Python {version} is neither on the path (`python{version}`) nor among pyenv's versions; "
        "install it, as a wheel is tested on each version."
    )


def candidates(version: str) -> Iterator[Path]:
    """Files that may be such an interpreter, those on the path first."""
    on_path = shutil.which(f"python{version}")
    if on_path is not None:
        yield Path(on_path)
    pyenv = shutil.which("pyenv")
    if pyenv is not None:
        asked = subprocess.run([pyenv, "root"], capture_output=True, text=True, check=False)
        yield from newest_first((Path(asked.stdout.strip()) / "versions").glob(f"{version}.*"))


def newest_first(folders: Iterator[Path]) -> Iterator[Path]:
    """Interpreters in folders named by versions, the newest first; previews are left out."""
    released = [each for each in folders if re.fullmatch(r"\d+\.\d+\.\d+", each.name)]
    for folder in sorted(released, key=lambda each: int(each.name.split(".")[2]), reverse=True):
        yield folder / "bin" / "python"


def answered(interpreter: Path) -> str:
    """Ask an interpreter for its version; empty if it does not run."""
    try:
        done = subprocess.run([interpreter, "-c", ASK], capture_output=True, text=True, check=False)
    except OSError:
        return ""
    return done.stdout.strip()
