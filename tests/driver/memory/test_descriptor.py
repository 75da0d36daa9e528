"""Descriptions of descriptors that clients send."""

import fcntl
import os
import subprocess

import pytest

from tightship.driver.memory.descriptor import describe, new_segment
from tightship.driver.memory.trusted import Trusted
from tightship.driver.types.attachment import Attachment

NOTHING_TRUSTED = Trusted()


def test_a_segment_is_sealed_and_says_its_size():
    file = new_segment(5000)
    found = describe(file, NOTHING_TRUSTED)
    assert found.is_regular
    assert found.is_shrink_sealed
    assert not found.is_write_sealed
    assert found.size_bytes == 5000
    with pytest.raises(OSError, match="not permitted"):
        os.ftruncate(file, 1)
    os.close(file)


def test_memory_of_huge_pages_is_not_safe_to_map_however_it_is_sealed():
    flags = os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING | os.MFD_HUGETLB
    try:
        file = os.memfd_create("huge", flags)
    except OSError:
        pytest.skip("the kernel has no huge pages")
    fcntl.fcntl(file, fcntl.F_ADD_SEALS, fcntl.F_SEAL_SHRINK)
    assert not describe(file, NOTHING_TRUSTED).is_shrink_sealed
    os.close(file)


def test_a_place_in_a_folder_is_not_open_to_read_or_write(tmp_path):
    (tmp_path / "file").write_bytes(b"content")
    file = os.open(tmp_path / "file", os.O_PATH)
    found = describe(file, NOTHING_TRUSTED)
    assert not found.is_readable
    assert not found.is_writable
    os.close(file)


def test_what_is_no_file_is_none():
    read_end, write_end = os.pipe()
    for file in (read_end, write_end):
        assert not describe(file, NOTHING_TRUSTED).is_regular
    os.close(write_end)
    assert describe(read_end, NOTHING_TRUSTED).fence is not None
    os.close(read_end)


def folder_of_the_dead():
    """A folder of `/proc` of which the kernel says nothing any more."""
    with subprocess.Popen(["cat"], stdin=subprocess.PIPE) as process:
        return os.open(f"/proc/{process.pid}/fd", os.O_RDONLY | os.O_DIRECTORY)


def test_what_the_kernel_says_nothing_of_is_good_for_nothing():
    file = folder_of_the_dead()
    found = describe(file, NOTHING_TRUSTED)
    assert found == Attachment(file, is_regular=False, is_readable=False, is_writable=False)
    os.close(file)
