from pathlib import Path

import pytest

from tightship.errors import InputError
from tightship.prepared_cache import UnusableCacheError, cache_folder, cache_size_bytes, settings


def test_the_folder_is_the_chosen_one_or_below_the_users_caches(monkeypatch, tmp_path) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.delenv("TIGHTSHIP_CACHE_DIR", raising=False)
    assert cache_folder() == tmp_path / "tightship" / "prepared"
    monkeypatch.setenv("TIGHTSHIP_CACHE_DIR", str(tmp_path / "mine"))
    assert cache_folder() == tmp_path / "mine"
    (tmp_path / "link").symlink_to(tmp_path)
    monkeypatch.setenv("TIGHTSHIP_CACHE_DIR", str(tmp_path / "link" / "mine"))
    assert cache_folder() == tmp_path / "mine"


def test_without_a_home_it_is_said_what_to_set(monkeypatch) -> None:
    def no_home() -> Path:
        raise RuntimeError

    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.delenv("TIGHTSHIP_CACHE_DIR", raising=False)
    monkeypatch.setattr(Path, "home", no_home)
    with pytest.raises(UnusableCacheError, match="XDG_CACHE_HOME"):
        cache_folder()


def test_the_size_is_an_amount(monkeypatch) -> None:
    monkeypatch.delenv("TIGHTSHIP_CACHE_SIZE", raising=False)
    assert cache_size_bytes() == settings.SIZE_BYTES
    monkeypatch.setenv("TIGHTSHIP_CACHE_SIZE", "3MiB")
    assert cache_size_bytes() == 3 << 20
    monkeypatch.setenv("TIGHTSHIP_CACHE_SIZE", "much")
    with pytest.raises(InputError, match="TIGHTSHIP_CACHE_SIZE: `much`"):
        cache_size_bytes()
