"""Programs of these tests are made in their own process, where settings are replaced."""

from pathlib import Path

import pytest

from tightship.loading import reading_process
from tightship.prepared_cache import identity


@pytest.fixture(autouse=True)
def _in_this_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading_process, "_start", lambda _files: None)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of prepared models, where programs of files just written are kept as well."""
    monkeypatch.setenv("TIGHTSHIP_CACHE_DIR", str(tmp_path / "prepared"))
    monkeypatch.setenv("TIGHTSHIP_KEEP_PROGRAMS", "1")
    monkeypatch.setattr(identity, "SETTLED_NS", -(10**18))
    return tmp_path / "prepared"
