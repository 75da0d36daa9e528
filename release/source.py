"""The tree that is released, and the sdist that is made of it."""

import re
import tarfile
from collections.abc import Iterable
from pathlib import Path, PurePosixPath

from release.commands import ReleaseError, run, tool

FORBIDDEN_FOLDERS = {".git", ".ci", ".venv", "build", "dist", "__pycache__", ".hypothesis"}
FORBIDDEN_PATHS = ("benchmarks/results/",)
FORBIDDEN_SUFFIXES = {".so", ".o", ".whl", ".pyc"}
REQUIRED = {
    "LICENSE",
    "PKG-INFO",
    "README.md",
    "THIRD-PARTY-NOTICES.md",
    "native/CMakeLists.txt",
    "pyproject.toml",
    "src/tightship/__init__.py",
}


def check_tree(root: Path) -> None:
    """Refuse a tree with changes that are not committed.

    Raises:
        ReleaseError: There are some, or `root` is not in a git repository.
    """
    changed = run(["git", "status", "--porcelain"], root).splitlines()
    if changed:
        raise ReleaseError(
            f"{len(changed)} files differ from the last commit, the first is `{changed[0][3:]}`. "
            "Commit or remove them, or try with `--draft`."
        )


def check_version(root: Path, version: str) -> None:
    """Refuse a version that was released.

    Raises:
        ReleaseError: A tag has its name.
    """
    tags = set(run(["git", "tag", "--list"], root).split())
    found = tags & {version, f"v{version}"}
    if found:
        raise ReleaseError(
            f"Version {version} exists as the tag `{found.pop()}`. Raise the version first."
        )


def copied(root: Path, into: Path) -> Path:
    """Copy the files of the last commit into a new folder."""
    into.mkdir()
    archive = into.with_suffix(".tar")
    run(["git", "archive", f"--output={archive}", "HEAD"], root)
    with tarfile.open(archive) as file:
        file.extractall(into, filter="data")
    return into


def build_sdist(tree: Path, out: Path) -> Path:
    """Build the sdist of a tree, check it, and return its path.

    Raises:
        ReleaseError: The build failed, or the file is not as it should be.
    """
    run([*tool("build"), "--sdist", "--outdir", out, tree], out)
    (sdist,) = out.glob("*.tar.gz")
    check_members(sdist, members(sdist))
    return sdist


def members(sdist: Path) -> set[str]:
    """Paths of the files of an sdist, below its one folder."""
    with tarfile.open(sdist) as file:
        return {name.partition("/")[2] for name in file.getnames()} - {""}


def check_members(sdist: Path, names: Iterable[str]) -> None:
    """Refuse an sdist that lacks a file it needs or has one that was not written by hand.

    Raises:
        ReleaseError: It names the first such file.
    """
    paths = set(names)
    missing = sorted(REQUIRED - paths)
    if missing:
        raise ReleaseError(f"{sdist.name} lacks `{missing[0]}`; see `sdist` in pyproject.toml.")
    for name in sorted(paths):
        path = PurePosixPath(name)
        is_forbidden = (
            FORBIDDEN_FOLDERS & set(path.parts)
            or name.startswith(FORBIDDEN_PATHS)
            or path.suffix in FORBIDDEN_SUFFIXES
        )
        if is_forbidden:
            raise ReleaseError(f"{sdist.name} has `{name}`; see `sdist` in pyproject.toml.")


def unpacked(sdist: Path, into: Path) -> Path:
    """Unpack an sdist and return its one folder, below `into`."""
    with tarfile.open(sdist) as file:
        file.extractall(into, filter="data")
    (folder,) = (each for each in into.iterdir() if each.is_dir())
    return folder


def version_of(tree: Path) -> str:
    """Read the version of an unpacked sdist.

    Raises:
        ReleaseError: Its metadata has none.
    """
    found = re.search(r"^Version: (\S+)$", (tree / "PKG-INFO").read_text(), re.MULTILINE)
    if found is None:
        raise ReleaseError(f"{tree / 'PKG-INFO'} has no version.")
    return found[1]
