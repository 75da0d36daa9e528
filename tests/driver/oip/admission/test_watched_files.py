"""Files that are looked at now and then."""

import pytest

from tightship.driver.oip.admission import watched_files
from tightship.driver.oip.admission.watched_files import WatchedFiles


def test_a_file_is_looked_at_once_a_period(tmp_path, monkeypatch):
    now_s = 100.0
    monkeypatch.setattr(watched_files, "monotonic", lambda: now_s)
    path = tmp_path / "file"
    found = WatchedFiles([path])
    path.write_text("new")
    assert not found.have_changed()
    now_s += 1.5
    assert found.have_changed()
    now_s += 1.5
    assert not found.have_changed()
    path.write_text("longer")
    assert not found.have_changed()
    now_s += 1.5
    assert found.have_changed()
    found.look_again()
    now_s += 1.5
    assert found.have_changed()


@pytest.mark.parametrize("how", ["replaced", "linked", "removed"])
def test_a_change_is_seen_however_it_is_made(tmp_path, monkeypatch, how):
    monkeypatch.setattr(watched_files, "PERIOD_S", 0.0)
    path, other, link = tmp_path / "file", tmp_path / "other", tmp_path / "link"
    path.write_text("text")
    other.write_text("text")
    link.symlink_to(path)
    found = WatchedFiles([link])
    if how == "replaced":
        other.replace(path)
    elif how == "linked":  # as Kubernetes exchanges a secret
        (tmp_path / "next").symlink_to(other)
        (tmp_path / "next").replace(link)
    else:
        path.unlink()
    assert found.have_changed()
