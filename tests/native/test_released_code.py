"""Code of loaded libraries, whose resident pages are given back."""

import os
from pathlib import Path

import pytest

from tightship import _core


def resident_code_bytes(path: str) -> int:
    """Return the resident bytes of the executable mappings of a file in this process."""
    found, is_code, path = 0, False, os.path.realpath(path)
    for line in Path("/proc/self/smaps").read_text().splitlines():
        if "-" in line.partition(" ")[0]:
            is_code = line.endswith(f" {path}") and " r-xp " in line
        elif is_code and line.startswith("Rss:"):
            found += int(line.split()[1]) * 1024
    return found


def touched(path: str) -> int:
    """Run some code of the core, which makes pages of it resident."""
    _core.release_heap()
    _core.HostResource().allocate(1 << 20)
    return resident_code_bytes(path)


def test_pages_of_code_are_given_back_and_come_again() -> None:
    before = touched(_core.__file__)
    _core.release_code(_core.__file__)
    assert resident_code_bytes(_core.__file__) < before
    assert touched(_core.__file__) > 0


def test_a_file_is_found_by_any_of_its_paths(tmp_path: Path) -> None:
    linked = tmp_path / Path(_core.__file__).name
    linked.symlink_to(_core.__file__)
    before = touched(_core.__file__)
    _core.release_code(str(linked))
    assert resident_code_bytes(_core.__file__) < before


@pytest.mark.parametrize("name", ["no such file", "_core.so"])
def test_other_files_are_left_alone(name: str, tmp_path: Path) -> None:
    (tmp_path / "_core.so").touch()
    before = touched(_core.__file__)
    _core.release_code(str(tmp_path / name))
    assert resident_code_bytes(_core.__file__) >= before
