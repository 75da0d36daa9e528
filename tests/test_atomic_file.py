import fcntl
import os
import stat
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tightship.atomic_file import write_text


def test_a_file_is_replaced_whole(tmp_path):
    path = tmp_path / "plan.json"
    write_text(path, "old")
    write_text(path, "new\n")
    assert path.read_bytes() == b"new\n"
    assert list(tmp_path.iterdir()) == [path]


def test_a_failed_write_leaves_the_old_file_and_nothing_else(tmp_path):
    path = tmp_path / "plan.json"
    write_text(path, "old")
    with pytest.raises(UnicodeEncodeError):
        write_text(path, "new \ud800")
    assert path.read_text(encoding="utf-8") == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_a_missing_folder_is_an_os_error(tmp_path):
    with pytest.raises(FileNotFoundError):
        write_text(tmp_path / "nowhere" / "plan.json", "new")
    assert not list(tmp_path.iterdir())


def test_a_link_keeps_pointing_at_the_written_file(tmp_path):
    path, link = tmp_path / "plan.json", tmp_path / "link.json"
    write_text(path, "old")
    link.symlink_to(path)
    write_text(link, "new")
    assert link.is_symlink()
    assert path.read_text(encoding="utf-8") == "new"


def test_permissions_follow_the_umask(tmp_path):
    path = tmp_path / "plan.json"
    plain = tmp_path / "plain"
    write_text(path, "new")
    plain.write_text("", encoding="utf-8")
    assert stat.S_IMODE(path.stat().st_mode) == stat.S_IMODE(plain.stat().st_mode)


def test_what_is_no_regular_file_is_written_to(tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    try:
        write_text(pipe, "through")
        assert os.read(reader, 100) == b"through"
    finally:
        os.close(reader)


@pytest.mark.parametrize("name", ["plan.json", "gone/plan.json"])
def test_a_failure_names_the_file_that_was_asked_for(tmp_path, name, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "plan.json").mkdir()
    with pytest.raises(OSError, match=r"folder") as refused:
        write_text(Path(name), "new")
    assert refused.value.filename == name
    with pytest.raises(FileNotFoundError) as refused:
        write_text(Path("/proc/plan.json"), "new")  # where files cannot be made
    assert refused.value.filename == "/proc/plan.json"


def test_what_an_ended_process_of_the_same_number_left_is_no_obstacle(tmp_path):
    path = tmp_path / "plan.json"
    for name in (f".plan.json.{os.getpid()}.tmp", f".plan.json.{os.getpid()}-0.draft"):
        (tmp_path / name).write_text("half")
    write_text(path, "new")
    assert path.read_text() == "new"


def test_threads_that_write_one_path_at_once_all_succeed(tmp_path):
    path = tmp_path / "plan.json"
    texts = [str(number) * 1000 for number in range(8)]
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda text: write_text(path, text), texts * 8))
    assert path.read_text() in texts
    assert list(tmp_path.iterdir()) == [path]


def test_a_new_draft_under_the_name_of_a_finished_one_stays(tmp_path, monkeypatch):
    path, draft = tmp_path / "plan.json", tmp_path / ".plan.json.1-0.draft"
    draft.write_text("finished while another writer looks for abandoned drafts")
    lock = fcntl.flock

    def finish_and_start_another(file, operation):
        if operation & fcntl.LOCK_NB:
            draft.replace(path)
            draft.write_text("half")
        lock(file, operation)

    monkeypatch.setattr(fcntl, "flock", finish_and_start_another)
    write_text(path, "new")
    assert draft.read_text() == "half"
