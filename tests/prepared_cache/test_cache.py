"""One makes an entry, all read it; whatever is in the way is said, and nothing is half there."""

import os
import signal
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tightship.errors import FormatError, GraphError
from tightship.prepared_cache import About, PreparedCache, UnusableCacheError, entries
from tightship.prepared_cache import cache as cache_module

ABOUT = About("0" * 64, 3, {"threads": "1"}, "/models/a.onnx")
LIMIT = 1 << 20


def opened(folder: Path, limit_bytes: int = LIMIT) -> PreparedCache:
    cache = PreparedCache(folder / "prepared", limit_bytes)
    cache.open()
    return cache


def writer(content: bytes, made: list[Path]):
    def make(path: Path) -> None:
        made.append(path)
        path.write_bytes(content)

    return make


def refusing(content: bytes):
    def read(path: Path) -> bytes:
        if path.read_bytes() != content:
            raise FormatError(f"`{path}` is corrupt.")
        return content

    return read


def test_an_entry_is_made_by_the_first_and_read_by_all(tmp_path: Path) -> None:
    made: list[Path] = []
    read = [opened(tmp_path).read(ABOUT, writer(b"abc", made), Path.read_bytes) for _ in range(3)]
    assert read == [b"abc"] * 3
    assert len(made) == 1


def test_of_many_that_come_at_once_one_makes_it(tmp_path: Path) -> None:
    made: list[Path] = []
    together = threading.Barrier(8)

    def come(_: int) -> bytes:
        together.wait()
        return opened(tmp_path).read(ABOUT, writer(b"abc", made), Path.read_bytes)

    with ThreadPoolExecutor(8) as threads:
        assert list(threads.map(come, range(8))) == [b"abc"] * 8
    assert len(made) == 1


@pytest.mark.parametrize(
    "other",
    [
        ABOUT._replace(content="1" * 64),
        ABOUT._replace(facts={"threads": "2"}),
        ABOUT._replace(facts={"threads": "1", "shape x": "1"}),
    ],
)
def test_whatever_it_depends_on_makes_another_entry(tmp_path: Path, other: About) -> None:
    made: list[Path] = []
    for about in (ABOUT, other):
        opened(tmp_path).read(about, writer(b"abc", made), Path.read_bytes)
    assert len(made) == 2


def test_the_name_of_a_model_makes_no_other_entry(tmp_path: Path) -> None:
    made: list[Path] = []
    for about in (ABOUT, ABOUT._replace(model="/elsewhere/b.onnx")):
        opened(tmp_path).read(about, writer(b"abc", made), Path.read_bytes)
    assert len(made) == 1


def test_a_corrupt_entry_is_removed_and_made_anew(tmp_path: Path) -> None:
    cache = opened(tmp_path)
    cache.read(ABOUT, writer(b"xyz", []), Path.read_bytes)
    made: list[Path] = []
    assert cache.read(ABOUT, writer(b"abc", made), refusing(b"abc")) == b"abc"
    assert len(made) == 1


def test_an_entry_that_came_while_its_lock_was_waited_for_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    original = cache_module.locked

    def beaten_to_it(path: Path):
        path.with_name("model.tship").write_bytes(b"abc")
        return original(path)

    monkeypatch.setattr(cache_module, "locked", beaten_to_it)
    made: list[Path] = []
    assert opened(tmp_path).read(ABOUT, writer(b"xyz", made), Path.read_bytes) == b"abc"
    assert made == []


def test_a_new_entry_is_not_removed_for_the_one_that_was_refused(tmp_path: Path) -> None:
    def read(path: Path) -> bytes:
        if path.read_bytes() == b"abc":
            return b"abc"
        path.with_name("new").write_bytes(b"abc")  # another process makes it anew meanwhile
        path.with_name("new").replace(path)
        raise FormatError(f"`{path}` is corrupt.")

    made: list[Path] = []
    assert opened(tmp_path).read(ABOUT, writer(b"xyz", made), read) == b"abc"
    assert len(made) == 1


def test_an_entry_that_is_refused_each_time_ends_with_the_reason(tmp_path: Path) -> None:
    with pytest.raises(UnusableCacheError, match="is corrupt"):
        opened(tmp_path).read(ABOUT, writer(b"xyz", []), refusing(b"abc"))


def test_who_is_killed_while_making_leaves_nothing_in_the_way(tmp_path: Path) -> None:
    code = (
        "import os, signal, sys; from pathlib import Path\n"
        "from tests.prepared_cache.test_cache import ABOUT, opened\n"
        "def make(path):\n"
        "    path.write_bytes(b'ab'); path.with_name('.other.tmp').write_bytes(b'')\n"
        "    os.kill(os.getpid(), signal.SIGKILL)\n"
        "opened(Path(sys.argv[1])).read(ABOUT, make, Path.read_bytes)"
    )
    done = subprocess.run([sys.executable, "-c", code, tmp_path], check=False)
    assert done.returncode == -signal.SIGKILL
    assert [entry.is_complete for entry in entries(tmp_path / "prepared")] == [False]
    assert opened(tmp_path).read(ABOUT, writer(b"abc", []), Path.read_bytes) == b"abc"
    names = {path.name for path in (tmp_path / "prepared" / ABOUT.key).iterdir()}
    assert names == {"about.json", "lock", "model.tship"}


def test_what_fails_to_be_made_is_not_there(tmp_path: Path) -> None:
    def make(path: Path) -> None:
        path.write_bytes(b"half")
        path.with_name(".draft").write_bytes(b"of a process that was killed")
        raise GraphError("Node `n` cannot be run.")

    with pytest.raises(GraphError, match="cannot be run"):
        opened(tmp_path).read(ABOUT, make, Path.read_bytes)
    assert [path.name for path in (tmp_path / "prepared" / ABOUT.key).iterdir()] == ["lock"]
    assert opened(tmp_path).read(ABOUT, writer(b"abc", []), Path.read_bytes) == b"abc"


def test_a_reason_without_a_number_is_said(tmp_path: Path) -> None:
    def make(_: Path) -> None:
        raise ChildProcessError("Preparing it ended with exit code 9.")

    with pytest.raises(UnusableCacheError, match="ended with exit code 9"):
        opened(tmp_path).read(ABOUT, make, Path.read_bytes)


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="`/dev/full` does not exist")
def test_a_full_disk_is_said_to_be(tmp_path: Path) -> None:
    def make(_: Path) -> None:
        with open("/dev/full", "wb", buffering=0) as file:
            file.write(b"abc")

    with pytest.raises(UnusableCacheError, match="No space left on device"):
        opened(tmp_path).read(ABOUT, make, Path.read_bytes)


def test_no_other_user_can_read_an_entry(tmp_path: Path) -> None:
    umask = os.umask(0)
    try:
        opened(tmp_path).read(ABOUT, writer(b"abc", []), Path.read_bytes)
    finally:
        os.umask(umask)
    modes = {path.stat().st_mode & 0o777 for path in (tmp_path / "prepared").rglob("*")}
    assert modes == {0o700, 0o600}
    assert (tmp_path / "prepared").stat().st_mode & 0o777 == 0o700


@pytest.mark.parametrize("name", ["", "model.tship"])
def test_an_entry_that_others_can_write_is_not_read(tmp_path: Path, name: str) -> None:
    opened(tmp_path).read(ABOUT, writer(b"abc", []), Path.read_bytes)
    (tmp_path / "prepared" / ABOUT.key / name).chmod(0o777)
    with pytest.raises(UnusableCacheError, match=r"can be written by others \(mode 777"):
        opened(tmp_path).read(ABOUT, writer(b"abc", []), Path.read_bytes)


def test_a_folder_that_others_can_write_is_not_used(tmp_path: Path) -> None:
    (tmp_path / "prepared").mkdir()
    (tmp_path / "prepared").chmod(0o770)
    with pytest.raises(UnusableCacheError, match="can be written by others"):
        opened(tmp_path)


def test_the_entry_used_longest_ago_goes_where_there_is_no_room(tmp_path: Path) -> None:
    cache, abouts = opened(tmp_path, 3000), [ABOUT._replace(content=d * 64) for d in "012"]
    for number, about in enumerate(abouts[:2]):
        cache.read(about, writer(bytes(1000), []), Path.exists)
        os.utime(tmp_path / "prepared" / about.key / "model.tship", (number, number))
    cache.read(abouts[0], writer(b"", []), Path.exists)  # its bytes are not: that would mark it
    cache.read(abouts[2], writer(bytes(1000), []), Path.exists)
    kept = {entry.about["content"] for entry in entries(tmp_path / "prepared")}
    assert kept == {abouts[0].content, abouts[2].content}


def test_a_model_larger_than_the_cache_is_not_made(tmp_path: Path) -> None:
    with pytest.raises(UnusableCacheError, match=r"5 B.*4 B; raise TIGHTSHIP_CACHE_SIZE"):
        opened(tmp_path, 4).read(ABOUT._replace(size_bytes=5), writer(b"", []), Path.read_bytes)


def test_a_file_that_is_mapped_stays_whole_when_its_entry_goes(tmp_path: Path) -> None:
    file = opened(tmp_path).read(ABOUT, writer(b"abc", []), lambda path: path.open("rb"))
    opened(tmp_path, 3).read(ABOUT._replace(content="1" * 64), writer(b"new", []), Path.read_bytes)
    assert len(entries(tmp_path / "prepared")) == 1
    with file:
        assert file.read() == b"abc"
