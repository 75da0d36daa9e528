"""A model's digest follows its bytes, and is computed again only when a file's facts differ."""

import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tightship.prepared_cache import identify
from tightship.prepared_cache import identity as module

LONG_AGO = 1_000_000_000


@pytest.fixture
def computed(monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """Models whose bytes have been digested."""
    found: list[Path] = []
    original = module._computed
    monkeypatch.setattr(
        module, "_computed", lambda model, *rest: found.append(model) or original(model, *rest)
    )
    monkeypatch.setattr(module, "SETTLED_NS", -(10**18))
    return found


def written(path: Path, content: bytes) -> Path:
    path.write_bytes(content)
    return path


def digest(folder: Path, model: Path, *data: Path) -> str:
    return identify(model, lambda: data, folder).digest


def test_a_digest_is_of_the_bytes_and_not_of_the_name(tmp_path: Path) -> None:
    one, same = written(tmp_path / "a", b"abc"), written(tmp_path / "b", b"abc")
    other = written(tmp_path / "c", b"abd")
    assert digest(tmp_path, one) == digest(tmp_path, same) != digest(tmp_path, other)


def test_bytes_cannot_move_from_one_file_to_the_next(tmp_path: Path) -> None:
    one = written(tmp_path / "a", b"ab"), written(tmp_path / "b", b"c")
    other = written(tmp_path / "c", b"a"), written(tmp_path / "d", b"bc")
    assert digest(tmp_path, *one) != digest(tmp_path, *other)


def test_it_is_computed_once(tmp_path: Path, computed: list[Path]) -> None:
    model = written(tmp_path / "a", b"abc")
    assert len({digest(tmp_path, model) for _ in range(3)}) == 1
    assert len(computed) == 1


def test_of_many_that_ask_at_once_one_computes_it(tmp_path: Path, computed: list[Path]) -> None:
    model = written(tmp_path / "a", b"abc")
    with ThreadPoolExecutor(8) as threads:
        assert len(set(threads.map(lambda _: digest(tmp_path, model), range(16)))) == 1
    assert len(computed) == 1


def test_a_note_that_came_while_its_lock_was_waited_for_is_trusted(
    tmp_path: Path, computed: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    model = written(tmp_path / "a", b"abc")
    before, original, asked = digest(tmp_path, model), module._noted, []
    monkeypatch.setattr(
        module, "_noted", lambda note: original(note) if asked else asked.append(note)
    )
    assert digest(tmp_path, model) == before
    assert len(computed) == 1


def replaced(path: Path) -> None:
    written(path.with_name("new"), path.read_bytes()[::-1])
    os.utime(path.with_name("new"), ns=(path.stat().st_atime_ns, path.stat().st_mtime_ns))
    path.with_name("new").replace(path)


def rewritten_in_the_same_instant(path: Path) -> None:
    before, content = path.stat(), path.read_bytes()[::-1]
    while path.stat().st_ctime_ns == before.st_ctime_ns:  # as long as a tick of the clock
        path.write_bytes(content)
        os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))


@pytest.mark.parametrize("change", [replaced, rewritten_in_the_same_instant])
@pytest.mark.parametrize("which", [0, 1])
def test_bytes_that_change_are_seen(tmp_path: Path, computed: list[Path], change, which) -> None:
    files = written(tmp_path / "a", b"abc"), written(tmp_path / "b", b"xyz")
    before = digest(tmp_path, *files)
    change(files[which])
    assert digest(tmp_path, *files) != before
    assert len(computed) == 2


def test_a_file_written_just_now_is_not_noted(tmp_path: Path) -> None:
    digest(tmp_path, written(tmp_path / "a", b"abc"))
    assert list((tmp_path / "known").glob("*.json")) == []


def test_an_identity_knows_that_a_file_has_gone(tmp_path: Path) -> None:
    model = written(tmp_path / "a", b"abc")
    identity = identify(model, tuple, tmp_path)
    assert identity.is_current()
    assert identity.size_bytes == 3
    model.unlink()
    assert not identity.is_current()


@pytest.mark.parametrize(
    "text", ["", "[]", "{}", '{"format": "tightship.known.v1", "files": [], "digest": "0"}', "\xff"]
)
def test_a_note_that_is_something_else_is_not_trusted(
    tmp_path: Path, computed: list[Path], text: str
) -> None:
    model = written(tmp_path / "a", b"abc")
    before = digest(tmp_path, model)
    (note,) = (tmp_path / "known").glob("*.json")
    note.write_text(text, encoding="latin-1")
    assert digest(tmp_path, model) == before
    assert len(computed) == 2


def test_a_note_that_others_can_write_is_not_trusted(tmp_path: Path, computed: list[Path]) -> None:
    model = written(tmp_path / "a", b"abc")
    digest(tmp_path, model)
    (note,) = (tmp_path / "known").glob("*.json")
    note.chmod(0o666)
    digest(tmp_path, model)
    assert len(computed) == 2


def test_without_room_for_notes_it_is_computed_each_time(
    tmp_path: Path, computed: list[Path]
) -> None:
    model = written(tmp_path / "a", b"abc")
    folder = written(tmp_path / "file", b"") / "folder"
    assert digest(folder, model) == digest(folder, model)
    assert len(computed) == 2


def test_a_model_that_cannot_be_read_is_said_to(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="missing"):
        identify(tmp_path / "missing", tuple, tmp_path)


ON_A_FULL_DISK = """
import resource, signal, sys
from pathlib import Path
from tightship.prepared_cache import identify, identity

identity.SETTLED_NS = -(10**18)
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
folder = Path(sys.argv[1])
print(identify(folder / "model", lambda: (), folder).digest)
"""


def test_where_no_note_can_be_written_the_digest_is_computed(tmp_path: Path) -> None:
    model = written(tmp_path / "model", b"abc")
    done = subprocess.run(
        [sys.executable, "-c", ON_A_FULL_DISK, tmp_path],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.stderr, done.stdout) == ("", f"{digest(tmp_path / 'other', model)}\n")
    assert [path.name for path in (tmp_path / "known").iterdir() if path.suffix != ".lock"] == []
