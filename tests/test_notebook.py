"""Progress bars: what they show, and that they go."""

import sys

import pytest

import tightship
from tests.models import conv_net
from tightship import notebook
from tightship.errors import LibraryError
from tightship.notebook import ProgressBar


@pytest.fixture
def at_once(monkeypatch):
    """Show bars from the first call on."""
    monkeypatch.setattr(notebook, "_SILENT_SECONDS", 0)


@pytest.mark.usefixtures("at_once")
def test_a_bar_shows_its_label_and_share_and_goes(capsys) -> None:
    with ProgressBar("packing") as progress:
        progress(0, 4096)
        progress(4096, 4096)
        assert progress._bar.n == progress._bar.total == 4096
    assert "packing" in capsys.readouterr().err
    assert progress._bar is None


@pytest.mark.usefixtures("at_once")
def test_a_total_that_is_not_known_shows_nothing_and_may_change() -> None:
    with ProgressBar() as progress:
        progress(0, 0)
        assert progress._bar is None
        progress(1, 2)
        progress(3, 8)
        assert (progress._bar.n, progress._bar.total) == (3, 8)


def test_short_work_shows_nothing(capsys) -> None:
    with ProgressBar("packing") as progress:
        progress(1, 2)
        progress(2, 2)
    assert capsys.readouterr().err.strip() == ""


def test_the_end_of_the_statement_takes_the_bar_away_after_an_error_too() -> None:
    progress = ProgressBar()
    progress(1, 2)
    with pytest.raises(ValueError, match="invalid literal"), progress:
        int("none")
    assert progress._bar is None


def test_loading_and_preparing_report_to_a_bar(tmp_path) -> None:
    model = conv_net().SerializeToString()
    with ProgressBar("a") as progress, tightship.load(model, progress=progress):
        assert progress._bar.n == progress._bar.total > 0
    with ProgressBar("b") as progress:
        tightship.prepare(model, tmp_path / "net.tship", progress=progress)
        assert progress._bar.n == progress._bar.total > 0


def test_without_tqdm_the_extra_is_named(monkeypatch) -> None:
    monkeypatch.setitem(sys.modules, "tqdm.auto", None)
    with pytest.raises(LibraryError, match=r"install `tightship\[notebook\]`"):
        ProgressBar()
