import re
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.view import plans
from tightship.view.picture import Picture, Rectangle, Step
from tightship.view.svg import HEIGHT, WIDTH, svg

NAME = "{http://www.w3.org/2000/svg}"


def hints(picture, **options):
    rectangles = ElementTree.fromstring(svg(picture, **options)).iter(f"{NAME}rect")
    return [title.text for r in rectangles if (title := r.find(f"{NAME}title")) is not None]


def test_every_buffer_of_a_small_plan_is_drawn_with_a_hint():
    picture = plans.cnn()
    assert [hint.split()[0] for hint in hints(picture)] == [r.name for r in picture.rectangles]


def test_a_large_plan_draws_its_largest_buffers_and_counts_the_rest():
    picture = plans.wide(5000)
    assert len(hints(picture, rectangles_max=100)) == 100
    text = svg(picture, rectangles_max=100)
    assert "4,900 small buffers drawn together" in text
    assert len(text) < 400_000


def test_buffers_too_small_to_see_still_leave_a_mark():
    dust = [Rectangle(f"dust{i}", 1, i * 1000, i, i + 1) for i in range(1000)]
    picture = Picture("dust", 1_000_000, 1, tuple(dust))
    merged = [e.get("d") for e in ElementTree.fromstring(svg(picture, rectangles_max=0)).iter()]
    assert sum(path.count("M") for path in merged if path) > 100


@pytest.mark.parametrize("picture", [plans.cnn(), plans.wide(2000)], ids=["cnn", "wide"])
def test_everything_lies_inside_the_picture(picture):
    for element in ElementTree.fromstring(svg(picture)).iter():
        x, y = float(element.get("x", 0)), float(element.get("y", 0))
        assert 0 <= x <= WIDTH
        assert 0 <= y <= HEIGHT
        if element.tag == f"{NAME}rect" and element.find(f"{NAME}title") is not None:
            assert x + float(element.get("width")) <= WIDTH
            assert y + float(element.get("height")) <= HEIGHT


def test_rectangles_keep_the_proportions_of_the_plan():
    low, high = Rectangle("low", 100, 0, 0, 5), Rectangle("high", 300, 100, 5, 20)
    root = ElementTree.fromstring(svg(Picture("two", 400, 400, (low, high))))
    first, second = (e for e in root.iter(f"{NAME}rect") if e.find(f"{NAME}title") is not None)
    assert float(second.get("height")) / float(first.get("height")) == pytest.approx(3, rel=0.02)
    assert float(second.get("width")) / float(first.get("width")) == pytest.approx(3, rel=0.02)
    assert float(second.get("y")) < float(first.get("y"))


def test_the_legend_cuts_long_operators_until_all_fit():
    steps = tuple(Step(f"s{i}", f"{i}" + "Operator" * 5, "", 1) for i in range(7))
    rectangles = tuple(Rectangle(f"r{i}", 1, 0, i, i + 1) for i in range(7))
    texts = ElementTree.fromstring(svg(Picture("long", 1, 1, rectangles, steps))).iter(
        f"{NAME}text"
    )
    (legend,) = (
        "".join(text.itertext()) for text in texts if text.findall(f"{NAME}tspan[@dx='4']")
    )
    assert [label[0] for label in legend.split("■")[1:]] == [str(i) for i in range(7)]
    assert len(legend) * 8 < WIDTH


@given(st.text())
def test_any_name_gives_well_formed_xml(name):
    ElementTree.fromstring(svg(Picture(name, 64, 32, (Rectangle(name, 64, 0, 0, 1),))))


def test_an_empty_plan_is_an_empty_picture():
    assert hints(Picture("empty", 0, 0, ())) == []


def test_the_load_is_drawn_over_the_steps_and_touches_the_bound():
    two = Picture("two", 400, 400, (Rectangle("a", 100, 0, 0, 5), Rectangle("b", 300, 100, 4, 9)))
    paths = ElementTree.fromstring(svg(two)).iter(f"{NAME}path")
    (curve,) = (path for path in paths if path.get("class") == "ts-load")
    heights = [float(y) for y in re.findall(r"[V ]([0-9.]+)", curve.get("d"))]
    (bound,) = (
        line
        for line in ElementTree.fromstring(svg(two)).iter(f"{NAME}line")
        if line.get("class") == "ts-bound"
    )
    assert min(heights) == float(bound.get("y1"))
    assert len(set(heights)) == 3
