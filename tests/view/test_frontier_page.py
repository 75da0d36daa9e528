"""Pages of frontiers: the picture and a table of its plans."""

from tests.view.test_frontier_svg import PICTURE, POINTS
from tightship.view.frontier_page import frontier_page


def test_the_page_lists_the_plans():
    page = frontier_page(PICTURE)
    assert page.count("<tr>") == 1 + len(POINTS)
    assert "16.0 MiB (chosen)" in page
    assert "<script" not in page
