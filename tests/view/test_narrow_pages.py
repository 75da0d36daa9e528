"""Pages in a window as narrow as a telephone's: nothing lies beside it."""

import pytest

from tests.view import plans
from tightship.view.replay_page import replay_page
from tightship.view.replay_picture import Panel, ReplayPicture
from tightship.view.session_page import session_page
from tightship.view.session_picture import PlannedContext, SessionPicture
from tightship.view.timeline import timeline

WIDTH = 400
MIB = 1 << 20


def replayed():
    panels = tuple(
        Panel(name, (MIB, 2 * MIB), (MIB, 3 * MIB), 12345.0, 67890) for name in ("pool", "host")
    )
    return replay_page(ReplayPicture("a trace.json", 1_000_000, panels))


def sessions():
    parts = {"weights": 400 * MIB, "arena": MIB, "in and out": MIB, "runtime": 60 * MIB}
    planned = (PlannedContext(8192, parts, 99 * MIB),)
    return session_page(SessionPicture("decoder", planned, (1, 2, 4, 8), frozenset({8192})))


@pytest.mark.parametrize("page", [replayed, sessions, lambda: timeline(plans.cnn())])
def test_a_page_is_no_wider_than_a_narrow_window(browser, tmp_path, page):
    path = tmp_path / "page.html"
    path.write_text(page(), encoding="utf-8")
    size = {"width": WIDTH, "height": 800, "deviceScaleFactor": 1, "mobile": False}
    browser.call("Emulation.setDeviceMetricsOverride", **size)
    try:
        browser.open(path.as_uri())
        assert browser.evaluate("document.documentElement.scrollWidth") <= WIDTH
    finally:
        browser.call("Emulation.clearDeviceMetricsOverride")
