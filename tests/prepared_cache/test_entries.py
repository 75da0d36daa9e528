from pathlib import Path

from tests.prepared_cache.test_cache import ABOUT, opened, writer
from tightship.prepared_cache import clear, entries
from tightship.prepared_cache.lock import locked


def test_a_folder_that_is_not_there_has_no_entries(tmp_path: Path) -> None:
    assert entries(tmp_path / "none") == []
    assert clear(tmp_path / "none") == ([], [])


def test_an_entry_says_what_it_was_made_from(tmp_path: Path) -> None:
    opened(tmp_path).read(ABOUT, writer(b"abc", []), Path.read_bytes)
    (entry,) = entries(tmp_path / "prepared")
    assert entry.key == ABOUT.key
    assert entry.is_complete
    assert entry.size_bytes > 3
    assert entry.about == {"model": ABOUT.model, "content": ABOUT.content, "threads": "1"}


def test_clearing_removes_what_is_an_entry_and_nothing_else(tmp_path: Path) -> None:
    folder = tmp_path / "prepared"
    opened(tmp_path).read(ABOUT, writer(b"abc", []), Path.read_bytes)
    (folder / "known").mkdir()
    (folder / "known" / "mine.txt").write_text("kept")
    (folder / "known" / "abc.lock").touch()
    (folder / "photos").mkdir()
    removed, left = clear(folder)
    assert [entry.key for entry in removed] == [ABOUT.key]
    assert left == []
    assert {path.name for path in folder.iterdir()} == {"known", "photos"}
    assert [path.name for path in (folder / "known").iterdir()] == ["mine.txt"]


def test_an_entry_that_is_being_made_is_left(tmp_path: Path) -> None:
    path = tmp_path / ABOUT.key
    path.mkdir()
    with locked(path / "lock"):
        removed, left = clear(tmp_path)
    assert removed == []
    assert [entry.is_complete for entry in left] == [False]
    assert len(clear(tmp_path)[0]) == 1
    assert not path.exists()
