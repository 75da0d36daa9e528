"""The page as text: whole, harmless, alone."""

import json
import re
from html.parser import HTMLParser

from hypothesis import given
from hypothesis import strategies as st

from tests.view import plans
from tightship.view.picture import Picture, Rectangle, picture_of_buffers
from tightship.view.timeline import timeline

VOID = {"meta", "link", "input", "rect", "line", "path"}


class Outline(HTMLParser):
    """Tags, attributes and the text of scripts, as an HTML parser sees them."""

    def __init__(self, page):
        super().__init__()
        self.open, self.tags, self.attributes, self.scripts, self.title = [], [], [], [], ""
        self.feed(page)

    def handle_starttag(self, tag, attributes):
        self.tags.append(tag)
        self.attributes.extend((tag, *attribute) for attribute in attributes)
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        if tag not in VOID:
            assert self.open.pop() == tag

    def handle_data(self, data):
        if self.open and self.open[-1] == "script":
            self.scripts.append(data)
        if self.open and self.open[-1] == "title" and "svg" not in self.open:
            self.title += data


def data_of(page):
    return json.loads(Outline(page).scripts[0])


def one(name):
    return Picture(name, 64, 64, (Rectangle(name, 64, 0, 0, 1),))


def test_every_buffer_is_in_the_data():
    picture = plans.wide(3000)
    data = data_of(timeline(picture))
    columns = ("names", "sizes", "offsets", "starts", "stops")
    assert [*zip(*(data[column] for column in columns), strict=True)] == [
        (r.name, r.size_bytes, r.offset_bytes, r.start_step, r.stop_step)
        for r in picture.rectangles
    ]
    assert len(data["slots"]) == len(data["shares"]) == len(data["kinds"]["at"]) == 3000


def test_the_load_in_the_data_is_the_load_of_each_step():
    picture = plans.cnn()
    data = data_of(timeline(picture))
    load = dict(zip(data["loadSteps"], data["loadBytes"], strict=True))
    running = 0
    for index, step in enumerate(picture.steps):
        running = load.get(index, running)
        assert running == step.live_bytes


HOSTILE = [
    "</script >",
    "</script/x>",
    "<!--<script>",
    "\"'><img src=x>",
    "&lt;",
    "]]>",
    "\u2028",
    "$title",
]


@given(st.one_of(st.text(), st.sampled_from(HOSTILE)))
def test_any_name_survives_as_data_and_opens_no_tag(name):
    page = timeline(one(name))
    assert data_of(page)["names"] == [name]
    plain = Outline(timeline(one("plain")))
    assert [tag for tag in Outline(page).tags if tag != "text"] == [
        tag for tag in plain.tags if tag != "text"
    ]
    assert {a[:2] for a in Outline(page).attributes} <= {a[:2] for a in plain.attributes}
    assert not set("<>&") & set(Outline(page).scripts[0])
    page.encode()


def test_a_lone_surrogate_in_a_name_can_be_written_to_a_file():
    page = timeline(one("broken \ud800 name"))
    assert data_of(page)["names"] == ["broken \ud800 name"]
    page.encode("utf-8")


def test_the_page_refers_to_nothing_elsewhere():
    page = timeline(plans.cnn())
    without_namespace = page.replace('xmlns="http://www.w3.org/2000/svg"', "")
    assert re.findall(r"https?://|url\(|@import|import\(", without_namespace) == []
    links = [(t, n, v) for t, n, v in Outline(page).attributes if n in ("src", "href", "action")]
    assert links == [("link", "href", "data:,")]


def test_tags_are_balanced():
    outline = Outline(timeline(plans.cnn()))
    assert outline.open == []
    assert outline.title == "resnet50.onnx: memory plan"


def test_without_a_script_the_numbers_and_a_still_picture_remain():
    page = timeline(plans.cnn())
    still = page[page.index("<noscript>") : page.index("</noscript>")]
    assert "<svg" in still
    assert "JavaScript" in still
    for shown in ("139.5 MiB", "weights", "97.7 MiB", "greedy_by_size"):
        assert shown in page


def test_a_plan_without_a_model_is_drawn():
    rows = [("a", 0, 2, 64, 0), ("b", 1, 3, 128, 64), ("c", 1_000_000, 2_000_000, 32, 0)]
    data = data_of(timeline(picture_of_buffers("plan.csv", rows, lower_bound_bytes=192)))
    assert data["arena"] == 192
    assert data["steps"] == 2_000_000
    assert data["peak"] == 1
    assert len(data["loadSteps"]) < 10


def test_an_empty_plan_is_drawn():
    data = data_of(timeline(Picture("empty", 0, 0, ())))
    assert data["names"] == []


def test_a_bounded_plan_lists_what_it_does_not_hold():
    picture = plans.bounded()
    page = timeline(picture)
    assert "Outside the plan" in page
    assert "rows depend on data" in page
    assert "Outside the plan" not in timeline(plans.cnn())
