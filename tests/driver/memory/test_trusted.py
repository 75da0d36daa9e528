"""Files that are trusted to keep their length."""

import os

import pytest

from tightship.driver.memory.descriptor import describe
from tightship.driver.memory.trusted import Trusted, trusted
from tightship.errors import InputError


@pytest.fixture
def folder(tmp_path):
    place = tmp_path / "models"
    place.mkdir(mode=0o755)
    (place / "inner").mkdir(mode=0o755)
    return place


def is_trusted(folders, path, flags=os.O_RDONLY):
    file = os.open(path, flags)
    try:
        return describe(file, folders).is_trusted
    finally:
        os.close(file)


def written(path, content=b"weights"):
    path.write_bytes(content)
    path.chmod(0o644)
    return path


def test_a_file_below_a_folder_is_trusted_and_one_beside_it_is_not(folder, tmp_path):
    folders = trusted([folder])
    assert is_trusted(folders, written(folder / "a"))
    assert is_trusted(folders, written(folder / "inner" / "a"))
    assert not is_trusted(folders, written(tmp_path / "a"))
    assert not is_trusted(folders, written(tmp_path / "models-too"))
    assert not is_trusted(Trusted(), folder / "a")
    assert not is_trusted(folders, folder / "inner")


def test_a_link_out_of_the_folder_leads_to_a_file_that_is_not_trusted(folder, tmp_path):
    outside = written(tmp_path / "outside")
    (folder / "link").symlink_to(outside)
    assert not is_trusted(trusted([folder]), folder / "link")
    (folder / "through").symlink_to(tmp_path)
    assert not is_trusted(trusted([folder]), folder / "through" / "outside")


def test_a_link_into_the_folder_leads_to_a_file_that_is(folder, tmp_path):
    inside = written(folder / "inside")
    (tmp_path / "link").symlink_to(inside)
    assert is_trusted(trusted([folder]), tmp_path / "link")


def test_a_folder_that_is_named_by_a_link_is_what_it_leads_to(folder, tmp_path):
    (tmp_path / "named").symlink_to(folder)
    assert is_trusted(trusted([tmp_path / "named"]), written(folder / "a"))


@pytest.mark.parametrize("mode", [0o664, 0o646])
def test_a_file_that_others_can_write_is_not_trusted(folder, mode):
    path = written(folder / "a")
    path.chmod(mode)
    assert not is_trusted(trusted([folder]), path)


def test_nor_one_in_a_folder_that_they_can_write(folder):
    path = written(folder / "inner" / "a")
    (folder / "inner").chmod(0o777)
    assert not is_trusted(trusted([folder]), path)


def test_nor_one_with_holes_or_that_has_been_replaced(folder):
    path = written(folder / "a", bytes(4096))
    file = os.open(path, os.O_RDWR)
    assert describe(file, trusted([folder])).is_trusted
    path.unlink()
    assert not describe(file, trusted([folder])).is_trusted
    written(path)
    assert not describe(file, trusted([folder])).is_trusted
    os.close(file)
    os.truncate(path, 1 << 20)
    assert not is_trusted(trusted([folder]), path)


def test_memory_without_a_place_is_not_trusted(folder):
    file = os.memfd_create(str(folder / "a"))
    assert not describe(file, trusted([folder])).is_trusted
    os.close(file)


def test_a_folder_that_others_can_write_or_that_is_none_is_refused(folder):
    with pytest.raises(InputError, match="cannot be trusted"):
        trusted([folder / "none"])
    with pytest.raises(InputError, match="no other user"):
        trusted([written(folder / "a")])
    folder.chmod(0o777)
    with pytest.raises(InputError, match="no other user"):
        trusted([folder])


def opened_and_unlinked(folder):
    """A descriptor of a file that has its only other name outside; the kernel marks its path."""
    path = written(folder / "a")
    os.link(path, folder.parent / "elsewhere")
    file = os.open(path, os.O_RDONLY)
    path.unlink()
    return file


def test_a_file_that_takes_the_place_of_one_that_is_gone_does_not_stand_for_it(folder):
    file = opened_and_unlinked(folder)
    written(folder / "a (deleted)")
    assert not describe(file, trusted([folder])).is_trusted
    os.close(file)


def test_nor_does_a_link_to_where_it_is_now(folder):
    file = opened_and_unlinked(folder)
    (folder / "a (deleted)").symlink_to(folder.parent / "elsewhere")
    assert not describe(file, trusted([folder])).is_trusted
    os.close(file)
