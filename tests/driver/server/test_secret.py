"""Drivers of one user have one secret, however they begin."""

import threading
from pathlib import Path

import pytest

from tightship.driver.server.secret import SECRET_BYTES, kept_secret
from tightship.errors import InputError

MOMENT_S = 0.3


def test_a_secret_is_kept(tmp_path):
    found = kept_secret(tmp_path / "driver")
    assert len(found) == SECRET_BYTES
    assert kept_secret(tmp_path / "driver") == found
    assert [each.name for each in (tmp_path / "driver").iterdir()] == ["secret"]


def test_drivers_that_meet_a_cut_secret_at_once_make_one(tmp_path, monkeypatch):
    kept_secret(tmp_path / "driver")
    (tmp_path / "driver/secret").write_bytes(b"cut")
    others, unlink = [], Path.unlink
    other = threading.Thread(target=lambda: others.append(kept_secret(tmp_path / "driver")))

    def unlink_late(path, **options):
        """Remove what this driver has found cut, after another has made it anew, if it can."""
        monkeypatch.setattr(Path, "unlink", unlink)
        other.start()
        other.join(MOMENT_S)
        unlink(path, **options)

    monkeypatch.setattr(Path, "unlink", unlink_late)
    found = kept_secret(tmp_path / "driver")
    other.join()
    assert others == [found]


def test_a_secret_that_others_can_read_is_none(tmp_path):
    kept_secret(tmp_path / "driver")
    (tmp_path / "driver/secret").chmod(0o644)
    with pytest.raises(InputError, match="must be this user's own"):
        kept_secret(tmp_path / "driver")
