"""Objects of shared memory behind names, in a folder that stands for the system's."""

import os

import pytest

from tightship.driver.oip.refusal import OipError
from tightship.driver.oip.region_files import RegionFiles, read, write
from tightship.driver.rules.regions import Region, RegionError


@pytest.fixture
def files(tmp_path):
    (tmp_path / "key").write_bytes(bytes(range(64)))
    found = RegionFiles(is_enabled=True, folder=tmp_path)
    yield found
    found.unregister(None)


def region(**changes):
    fields = {"name": "a", "key": "/key", "offset_bytes": 0, "size_bytes": 64} | changes
    return Region(**fields)


def open_files():
    return len(os.listdir("/proc/self/fd"))


def test_what_is_written_is_read(files):
    files.register(region())
    with files.used("a", 8, 16) as place:
        assert read(*place, 16) == bytes(range(8, 24))
        write(*place, memoryview(bytes(16)))
        assert read(*place, 16) == bytes(16)


def test_refused_registrations_leave_no_file_open(files, tmp_path):
    (tmp_path / "link").symlink_to(tmp_path / "key")
    (tmp_path / "folder").mkdir()
    os.mkfifo(tmp_path / "pipe")
    before = open_files()
    for key in ("/link", "/folder", "/pipe", "/nothing", "/a/b", "/..", "/tightship_x", ""):
        with pytest.raises((OipError, RegionError)):
            files.register(region(key=key))
    for changes in ({"size_bytes": 65}, {"size_bytes": 0}, {"offset_bytes": 1, "size_bytes": 1}):
        with pytest.raises(RegionError, match="invalid args"):
            files.register(region(**changes))
    assert open_files() == before
    assert files.status(None) == []


def test_another_users_object_is_refused(files, monkeypatch):
    before = open_files()
    monkeypatch.setattr(os, "geteuid", lambda: os.getuid() + 1)
    with pytest.raises(OipError, match="Unable to open"):
        files.register(region())
    assert open_files() == before


def test_a_region_in_use_goes_when_its_last_use_ends(files):
    before = open_files()
    files.register(region())
    with files.used("a", 0, 64) as place:
        with files.used("a", 0, 64):
            files.unregister("a")
            assert files.status("a") == [region()]
        assert read(*place, 4) == bytes(range(4))
    assert files.status(None) == []
    assert open_files() == before


def test_a_shortened_object_is_an_error_and_not_made_longer(files, tmp_path):
    files.register(region())
    os.truncate(tmp_path / "key", 8)
    with files.used("a", 0, 64) as place:
        with pytest.raises(OipError, match="shorter"):
            read(*place, 64)
        with pytest.raises(OipError, match="shorter"):
            write(*place, memoryview(bytes(64)))
    assert (tmp_path / "key").stat().st_size == 8
