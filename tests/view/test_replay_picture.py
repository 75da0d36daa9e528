import xml.etree.ElementTree as ET
from html.parser import HTMLParser

import pytest

from tightship.view.replay_page import replay_page
from tightship.view.replay_picture import WIDTH, Panel, ReplayPicture, replay_svg

SVG = "{http://www.w3.org/2000/svg}"
MIB = 1 << 20


def picture(*held_of_each, live=(MIB, 2 * MIB), name="some", time=12.0):
    panels = tuple(
        Panel(f"{name}{index}", live, held, time, index) for index, held in enumerate(held_of_each)
    )
    return ReplayPicture("a trace.json", 100, panels)


def drawn(what):
    return ET.fromstring(replay_svg(what))


def texts(root):
    return ["".join(element.itertext()) for element in root.iter(f"{SVG}text")]


def lowest_y(path):
    """The highest point of a path, which has the least y."""
    return min(float(y) for part in path.split("V")[1:] for y in [part.split("H")[0].strip("Z")])


def test_every_resource_has_a_panel_with_its_name_and_numbers():
    said = texts(drawn(picture((2 * MIB, 2 * MIB), (3 * MIB, 4 * MIB))))
    assert any("some0" in text and "2.00 MiB held, 1.00x, 12 ns" in text for text in said)
    assert any("some1" in text and "4.00 MiB held, 2.00x" in text for text in said)
    assert any("some1" in text and "1 refused" in text for text in said)
    assert any("100 operations, at most 2.00 MiB live" in text for text in said)


def test_what_is_held_lies_above_what_is_live_by_their_ratio():
    root = drawn(picture((4 * MIB, 4 * MIB)))
    paths = {path.get("class"): path.get("d") for path in root.iter(f"{SVG}path")}
    bottom = max(float(v.split("H")[0].strip("Z")) for v in paths["tr-live"].split("V")[1:])
    held, live = bottom - lowest_y(paths["tr-held"]), bottom - lowest_y(paths["tr-live"])
    assert held == pytest.approx(2 * live, abs=0.2)
    assert held > 0


def test_a_resource_that_holds_far_more_ends_at_the_top_and_says_so():
    root = drawn(picture((2 * MIB, 2 * MIB), (2 * MIB, 500 * MIB)))
    assert sum("above: up to 500.0 MiB" in text for text in texts(root)) == 1
    assert picture((500 * MIB,)).top_bytes <= 3.2 * 2 * MIB
    for path in root.iter(f"{SVG}path"):
        assert lowest_y(path.get("d")) >= 0


def test_an_empty_trace_has_an_empty_panel():
    root = drawn(ReplayPicture("none", 0, (Panel("host", (), (), 0.0, 0),)))
    assert list(root.iter(f"{SVG}path")) == []
    assert any("host" in text for text in texts(root))


class Elements(HTMLParser):
    def __init__(self, page):
        super().__init__()
        self.found = []
        self.feed(page)

    def handle_starttag(self, tag, attrs):
        self.found.append((tag, dict(attrs)))


def test_names_are_text_and_the_page_asks_for_nothing():
    page = replay_page(picture((MIB, MIB), name="<script>&'\""))
    tags = Elements(page).found
    assert not [tag for tag, _ in tags if tag in ("script", "img", "link", "iframe")]
    policy = next(a["content"] for tag, a in tags if a.get("http-equiv"))
    assert policy.startswith("default-src 'none'; style-src 'sha256-")
    assert sum(tag == "tr" for tag, _ in tags) == 2
    ET.fromstring(replay_svg(picture((MIB, MIB), name="<script>&'\"")))


def test_the_last_label_of_an_axis_ends_within_the_picture():
    root = drawn(picture((MIB, MIB), (MIB, MIB)))
    last = [text for text in root.iter(f"{SVG}text") if text.text == "100"]
    assert len(last) == 2
    assert all(text.get("text-anchor") == "end" and float(text.get("x")) < WIDTH for text in last)
