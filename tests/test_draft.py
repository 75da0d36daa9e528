"""Files that are there whole or not at all, whatever ends the writer."""

import os
import resource
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tightship.atomic_file import draft

KILLED_WHILE_WRITING = """
import os, signal, sys
from pathlib import Path
from tightship.atomic_file import draft
with draft(Path(sys.argv[1])) as file:
    file.write(b"half")
    file.flush()
    os.kill(os.getpid(), signal.SIGKILL)
"""


def test_a_file_has_its_name_when_it_is_whole(tmp_path: Path) -> None:
    path = tmp_path / "file"
    with draft(path) as file:
        file.write(b"all of it")
        assert not path.exists()
    assert path.read_bytes() == b"all of it"
    assert list(tmp_path.iterdir()) == [path]


def test_a_pipe_stays_one(tmp_path: Path) -> None:
    path = tmp_path / "pipe"
    os.mkfifo(path)
    with pytest.raises(FileExistsError, match="a device or a pipe"), draft(path):
        pass
    assert path.is_fifo()


def test_what_fails_leaves_the_old_file_and_nothing_else(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"old")
    with pytest.raises(ZeroDivisionError), draft(path) as file:
        file.write(bytes([1 // 0]))
    assert path.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [path]


def test_the_draft_of_a_killed_writer_is_removed_by_the_next(tmp_path: Path) -> None:
    path = tmp_path / "file"
    done = subprocess.run([sys.executable, "-c", KILLED_WHILE_WRITING, path], check=False)
    assert done.returncode == -signal.SIGKILL
    assert not path.exists()
    assert len(list(tmp_path.iterdir())) == 1
    with draft(path) as file:
        file.write(b"whole")
    assert list(tmp_path.iterdir()) == [path]


def test_a_draft_that_is_being_written_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "file"
    with draft(path) as first:
        first.write(b"first")
        with draft(path) as second:
            second.write(b"second")
        assert path.read_bytes() == b"second"
    assert path.read_bytes() == b"first"


def test_a_full_disk_leaves_the_old_file(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"old")
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, hard))
    try:
        with pytest.raises(OSError, match="File too large"), draft(path) as file:
            file.write(bytes(2000))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        signal.signal(signal.SIGXFSZ, handler)
    assert path.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [path]


def test_a_folder_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="missing"), draft(tmp_path / "missing" / "file"):
        raise AssertionError


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_read_only_folder_is_named(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    with pytest.raises(PermissionError), draft(tmp_path / "file"):
        raise AssertionError


def test_a_failure_names_the_file_that_was_asked_for(tmp_path: Path) -> None:
    for path, kind in ((tmp_path, IsADirectoryError), (Path("/proc/x.tship"), FileNotFoundError)):
        with pytest.raises(kind) as refused, draft(path):
            pass
        assert refused.value.filename == str(path)
