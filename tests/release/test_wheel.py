"""A wheel without a licence or a library, or for the wrong systems, is refused."""

import zipfile
from pathlib import Path

import pytest
from release.commands import ReleaseError

from release import wheel

NAME = "tightship-1.0-cp312-abi3-manylinux_2_27_x86_64.manylinux_2_28_x86_64.whl"
FILES = (
    "tightship-1.0.dist-info/licenses/LICENSE",
    "tightship-1.0.dist-info/licenses/THIRD-PARTY-NOTICES.md",
    "tightship/licenses/onednn/LICENSE",
    "tightship/licenses/onednn/THIRD-PARTY-PROGRAMS",
    "tightship/_core.abi3.so",
    "tightship/libtsomp.so",
    "tightship/libdnnl.so.3",
)


def made(folder: Path, contents: dict[str, str]) -> Path:
    path = folder / NAME
    with zipfile.ZipFile(path, "w") as file:
        for name, text in contents.items():
            file.writestr(name, text)
    return path


def test_a_wheel_with_all_is_accepted(tmp_path: Path) -> None:
    wheel.check_contents(made(tmp_path, dict.fromkeys(FILES, "text")))


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("is_empty", [False, True])
def test_a_wheel_without_one_of_them_is_refused(tmp_path: Path, name: str, is_empty: bool) -> None:
    contents = dict.fromkeys(FILES, "text")
    if is_empty:
        contents[name] = ""
    else:
        del contents[name]
    with pytest.raises(ReleaseError, match="has no file"):
        wheel.check_contents(made(tmp_path, contents))


def test_a_wheel_for_other_systems_is_refused(tmp_path: Path) -> None:
    path = made(tmp_path, {}).rename(tmp_path / "tightship-1.0-cp311-cp311-linux_x86_64.whl")
    with pytest.raises(ReleaseError, match="manylinux_2_28_x86_64"):
        wheel.check_wheel(path, tmp_path)
