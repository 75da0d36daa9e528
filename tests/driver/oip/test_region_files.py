"""Objects of shared memory behind names, in a folder that stands for the system's."""

import gc
import os
from pathlib import Path

import pytest

from tightship.driver.oip.refusal import OipError
from tightship.driver.oip.region_files import REGIONS_MAX, RegionFiles
from tightship.driver.oip.regions import Region, RegionError


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
    gc.collect()  # servers of other tests are cycles with files in them
    return len(os.listdir("/proc/self/fd"))


def test_what_is_written_is_in_the_object(files, tmp_path):
    files.register(region())
    with files.used("a", 8, 16) as window:
        assert window.bytes.tobytes() == bytes(range(8, 24))
        window.bytes[:] = 0
        window.check()
    assert (tmp_path / "key").read_bytes() == bytes([*range(8), *[0] * 16, *range(24, 64)])


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
    assert open_files() <= before
    assert files.status(None) == []


def test_another_users_object_is_refused(files, monkeypatch):
    before = open_files()
    monkeypatch.setattr(os, "geteuid", lambda: os.getuid() + 1)
    with pytest.raises(OipError, match="Unable to open"):
        files.register(region())
    assert open_files() <= before


def test_a_region_in_use_goes_when_its_last_use_ends(files):
    before = open_files()
    files.register(region())
    with files.used("a", 0, 64) as window:
        with files.used("a", 0, 64):
            files.unregister("a")
            assert files.status("a") == [region()]
        assert window.bytes[3] == 3
    assert files.status(None) == []
    assert open_files() <= before


def test_a_shortened_object_is_refused_and_not_made_longer(files, tmp_path):
    files.register(region())
    os.truncate(tmp_path / "key", 8)
    with pytest.raises(OipError, match="shorter"), files.used("a", 0, 64):
        pass
    with files.used("a", 0, 8) as window:
        assert window.bytes.tobytes() == bytes(range(8))
    assert (tmp_path / "key").stat().st_size == 8


def test_an_object_shortened_while_it_is_used_ends_no_process(files, tmp_path):
    size_bytes = 1 << 16
    (tmp_path / "large").write_bytes(b"x" * size_bytes)
    for name in ("read", "written"):
        files.register(region(name=name, key="/large", size_bytes=size_bytes))
    with files.used("read", 0, size_bytes) as read, files.used("written", 0, 8) as written:
        assert read.bytes[-1] == ord("x")
        os.truncate(tmp_path / "large", 0)
        assert not read.bytes.any()
        written.bytes[:] = 1
        for window in (read, written):
            with pytest.raises(OipError, match="shorter"):
                window.check()
    assert (tmp_path / "large").stat().st_size == 0
    os.truncate(tmp_path / "large", size_bytes)
    with pytest.raises(OipError, match="shorter"), files.used("read", 0, 8):
        pass


def test_windows_overlap_where_they_have_bytes_of_one_object(files, tmp_path):
    (tmp_path / "pages").write_bytes(bytes(8192))
    files.register(region(name="whole", key="/pages", size_bytes=8192))
    files.register(region(name="second", key="/pages", offset_bytes=4096, size_bytes=4096))
    files.register(region())
    with (
        files.used("whole", 4000, 96) as before,
        files.used("whole", 4000, 97) as into,
        files.used("second", 0, 8) as second,
        files.used("a", 0, 64) as other,
    ):
        assert into.overlaps(second)
        assert second.overlaps(into)
        assert not before.overlaps(second)
        assert not other.overlaps(before)


def mapped(path):
    """Count the mappings of the process that are of a file."""
    return Path("/proc/self/maps").read_text().count(f" {path.stat().st_ino} ")


def test_registering_leaves_nothing_behind(files, tmp_path):
    before = open_files()
    for _ in range(1000):
        files.register(region())
        with pytest.raises(RegionError, match="already in manager"):
            files.register(region())
        with pytest.raises(RegionError, match="invalid args"):
            files.register(region(name="b", size_bytes=65))
        files.unregister("a")
    assert open_files() <= before
    assert mapped(tmp_path / "key") == 0


def test_so_many_regions_that_the_next_is_refused(files, tmp_path):
    before = open_files()
    for number in range(REGIONS_MAX):
        files.register(region(name=str(number)))
    with pytest.raises(OipError, match="256 are registered, which is the limit"):
        files.register(region(name="more"))
    files.unregister("0")
    files.register(region(name="more"))
    files.unregister(None)
    assert open_files() <= before
    assert mapped(tmp_path / "key") == 0


def test_a_key_that_is_no_name_of_a_file_is_not_there(files):
    with pytest.raises(OipError, match="Unable to open"):
        files.register(region(key="/\ud800"))
