"""Files of a release are built once for a commit, and are kept whole or not at all."""

import pytest
from release.commands import ReleaseError
from release.kept import kept


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "kept").mkdir()
    return tmp_path / "kept"


def test_a_file_is_built_once(folder, tmp_path):
    def build():
        made = tmp_path / "a-cp311-b.whl"
        made.write_text("wheel")
        return made

    found = kept(folder, "*-cp311-*.whl", build)
    assert found.read_text() == "wheel"
    assert kept(folder, "*-cp311-*.whl", pytest.fail) == found
    assert [each.name for each in folder.iterdir()] == ["a-cp311-b.whl"]


def test_a_build_that_fails_leaves_nothing(folder):
    def build():
        raise ReleaseError("no compiler")

    with pytest.raises(ReleaseError):
        kept(folder, "*.whl", build)
    assert list(folder.iterdir()) == []


def test_a_file_that_was_moved_in_part_is_built_again(folder, tmp_path):
    (folder / "a-cp311-b.whl.part").write_text("wh")
    made = tmp_path / "a-cp311-b.whl"
    made.write_text("wheel")
    assert kept(folder, "*-cp311-*.whl", lambda: made).read_text() == "wheel"
