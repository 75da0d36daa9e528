"""Pictures of frontiers: a step for each plan, and what runs again under the pointer."""

from xml.etree import ElementTree

import pytest

from tightship.view.frontier_svg import FrontierPicture, FrontierPoint, frontier_svg

MIB = 2**20
POINTS = (
    FrontierPoint(64 * MIB, 0.0, ""),
    FrontierPoint(32 * MIB, 0.01, "40 Tanh"),
    FrontierPoint(16 * MIB, 0.28, "56 MatMul, 56 Tanh", is_chosen=True),
    FrontierPoint(4 * MIB, 10.5, "1,500 MatMul"),
)
PICTURE = FrontierPicture("<net>", "training", POINTS, 66 * MIB, 3 * MIB, 20 * MIB)
SVG = "{http://www.w3.org/2000/svg}"


def test_points_lie_lower_and_further_left_the_less_they_take_and_add():
    root = ElementTree.fromstring(frontier_svg(PICTURE))
    circles = {each.find(f"{SVG}title").text: each for each in root.iter(f"{SVG}circle")}
    assert len(circles) == len(POINTS)
    (chosen,) = (hint for hint in circles if hint.startswith("chosen: "))
    assert "16.0 MiB, +28.00% operations; again: 56 MatMul, 56 Tanh" in chosen
    placed = {float(each.get("cx")): float(each.get("cy")) for each in circles.values()}
    assert [placed[x] for x in sorted(placed)] == sorted(placed.values())
    assert any("nothing runs again" in hint for hint in circles)


def test_bound_and_budget_are_drawn_and_names_are_escaped():
    text = frontier_svg(PICTURE)
    assert "no way to run the steps takes less than 3.00 MiB" in text
    assert "budget 20.0 MiB" in text
    assert "&lt;net&gt;" in text
    assert "<net>" not in text


@pytest.mark.parametrize("points", [POINTS[:1], POINTS[1:2]])
def test_a_frontier_of_one_plan_is_drawn(points):
    picture = FrontierPicture("net", "inference", points, points[0].peak_bytes, 0)
    ElementTree.fromstring(frontier_svg(picture))
