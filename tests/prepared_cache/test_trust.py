import os
from pathlib import Path

import pytest

from tightship.prepared_cache.trust import UnusableCacheError, check_trusted


def test_what_is_ours_alone_is_trusted(tmp_path: Path) -> None:
    tmp_path.chmod(0o755)
    assert check_trusted(tmp_path).st_ino == tmp_path.stat().st_ino


def test_what_others_can_write_is_not(tmp_path: Path) -> None:
    tmp_path.chmod(0o720)
    with pytest.raises(UnusableCacheError, match="mode 720, needed 700"):
        check_trusted(tmp_path)


def test_what_belongs_to_others_is_not(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if os.geteuid() == 0:
        os.chown(tmp_path, 12345, -1)
    else:
        monkeypatch.setattr(os, "geteuid", lambda: 12345)
    with pytest.raises(UnusableCacheError, match="belongs to user"):
        check_trusted(tmp_path)


def test_a_link_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path)
    with pytest.raises(UnusableCacheError, match="symbolic link"):
        check_trusted(tmp_path / "link")
