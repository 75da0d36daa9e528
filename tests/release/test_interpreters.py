"""Interpreters are found on the path, and the newest release of a version among pyenv's."""

import sys
from pathlib import Path

import pytest
from release.commands import ReleaseError
from release.interpreters import answered, interpreter, newest_first

HERE = "{}.{}".format(*sys.version_info[:2])


def test_this_version_is_found_on_the_path(tmp_path: Path, monkeypatch) -> None:
    (tmp_path / f"python{HERE}").symlink_to(sys.executable)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert interpreter(HERE) == tmp_path / f"python{HERE}"


def test_one_on_the_path_that_says_another_version_is_passed_over(tmp_path, monkeypatch) -> None:
    (tmp_path / "python3.99").symlink_to(sys.executable)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(ReleaseError, match=r"Python 3\.99 is neither on the path"):
        interpreter("3.99")


def test_releases_come_before_older_ones_and_previews_not_at_all() -> None:
    names = ["3.12.1", "3.12.10", "3.12.0rc1", "3.12.9"]
    found = list(newest_first(Path(name) for name in names))
    assert found == [Path(name, "bin", "python") for name in ("3.12.10", "3.12.9", "3.12.1")]


def test_what_does_not_run_has_no_version(tmp_path: Path) -> None:
    assert answered(tmp_path / "absent") == ""
