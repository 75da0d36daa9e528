"""A release is refused for a changed tree, a version that exists, and an sdist with built files."""

import io
import subprocess
import tarfile
from pathlib import Path

import pytest
from release.commands import ReleaseError

from release import source


def git(folder: Path, *arguments: str) -> None:
    settings = ["-c", "user.name=A", "-c", "user.email=a@b.c", "-c", "commit.gpgsign=false"]
    subprocess.run(["git", *settings, *arguments], cwd=folder, check=True, capture_output=True)


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A repository with one commit and the tag v1.0."""
    folder = tmp_path / "tree"
    folder.mkdir()
    (folder / "file").write_text("committed")
    git(folder, "init", "-q")
    git(folder, "add", "file")
    git(folder, "commit", "-qm", "one")
    git(folder, "tag", "v1.0")
    return folder


def test_a_clean_tree_is_accepted_and_copied_without_git(tree: Path, tmp_path: Path) -> None:
    source.check_tree(tree)
    copy = source.copied(tree, tmp_path / "copy")
    assert [each.name for each in copy.iterdir()] == ["file"]


@pytest.mark.parametrize("name", ["file", "new"])
def test_a_tree_with_changes_is_refused(tree: Path, name: str) -> None:
    (tree / name).write_text("changed")
    with pytest.raises(ReleaseError, match=f"1 files differ .*`{name}`.*--draft"):
        source.check_tree(tree)


def test_a_folder_outside_git_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ReleaseError, match="git status"):
        source.check_tree(tmp_path)


@pytest.mark.parametrize("tag", ["v1.0", "1.1"])
def test_a_version_with_a_tag_is_refused(tree: Path, tag: str) -> None:
    git(tree, "tag", "--force", tag)
    version = tag.removeprefix("v")
    with pytest.raises(ReleaseError, match=f"Version {version} exists as the tag `{tag}`"):
        source.check_version(tree, version)
    source.check_version(tree, "1.2")


def sdist(folder: Path, *names: str) -> Path:
    """An sdist of empty files, with all that one needs."""
    path = folder / "some-1.0.tar.gz"
    with tarfile.open(path, "w:gz") as file:
        for name in (*source.REQUIRED, *names):
            file.addfile(tarfile.TarInfo(f"some-1.0/{name}"), io.BytesIO())
    return path


@pytest.mark.parametrize(
    "name",
    [
        "build/x",
        ".git/config",
        "src/build/x",
        "benchmarks/results/a.json",
        "src/tightship/_core.so",
        ".venv/bin/python",
    ],
)
def test_an_sdist_with_a_built_file_is_refused(tmp_path: Path, name: str) -> None:
    path = sdist(tmp_path, name)
    with pytest.raises(ReleaseError, match=rf"some-1\.0\.tar\.gz has `{name}`"):
        source.check_members(path, source.members(path))


def test_an_sdist_without_a_licence_is_refused(tmp_path: Path) -> None:
    path = sdist(tmp_path, "benchmarks/readme.py")
    names = source.members(path)
    source.check_members(path, names)
    with pytest.raises(ReleaseError, match="lacks `LICENSE`"):
        source.check_members(path, names - {"LICENSE"})


def test_the_version_is_that_of_the_metadata(tmp_path: Path) -> None:
    (tmp_path / "PKG-INFO").write_text("Metadata-Version: 2.2\nName: a\nVersion: 1.2.3\n\nText")
    assert source.version_of(tmp_path) == "1.2.3"
    (tmp_path / "PKG-INFO").write_text("Name: a\n")
    with pytest.raises(ReleaseError, match="has no version"):
        source.version_of(tmp_path)
