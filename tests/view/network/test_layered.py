"""Whole layouts: boxes apart, edges from side to side."""

from itertools import combinations

import pytest

from tightship.view.network import layered
from tightship.view.network.layered import laid_out


def overlaps(layout):
    def meet(one, other):
        (ax, ay, aw, ah), (bx, by, bw, bh) = one, other
        return ax < bx + bw and bx < ax + aw and ay < by + bh and by < ay + ah

    return [pair for pair in combinations(layout.boxes, 2) if meet(*pair)]


def ladder(count):
    """A chain with a skip over each three nodes."""
    return [(i, i + 1) for i in range(count - 1)] + [(i, i + 3) for i in range(0, count - 3, 3)]


@pytest.mark.parametrize("count", [0, 1, 2, 40])
def test_boxes_do_not_overlap_and_lie_in_the_picture(count):
    edges = ladder(count)
    layout = laid_out([(100.0, 38.0)] * count, edges, [False] * count)
    assert overlaps(layout) == []
    for x, y, width, height in layout.boxes:
        assert x >= -0.01
        assert x + width <= layout.width + 0.01
        assert y >= -0.01
        assert y + height <= layout.height + 0.01
    assert len(layout.routes) == len(edges)
    assert not any(layout.loose)


def test_an_edge_leaves_below_and_arrives_above():
    layout = laid_out([(100.0, 38.0), (80.0, 38.0)], [(0, 1)], [False, False])
    (ax, ay, aw, ah), (bx, by, bw, _) = layout.boxes
    assert layout.routes[0][0] == pytest.approx((ax + aw / 2, ay + ah))
    assert layout.routes[0][-1] == pytest.approx((bx + bw / 2, by))
    assert len(layout.routes[0]) % 3 == 1


def test_the_backward_pass_is_at_the_right():
    edges = [(0, 1), (1, 2), (2, 3), (3, 4), (1, 4), (4, 5), (0, 5)]
    flags = [False] * 3 + [True] * 3
    layout = laid_out([(100.0, 38.0)] * 6, edges, flags)
    assert overlaps(layout) == []
    right = min(layout.boxes[node][0] for node in (3, 4, 5))
    assert all(layout.boxes[node][0] + 100 < right for node in (0, 1, 2))
    tops = [layout.boxes[node][1] for node in (3, 4, 5)]
    assert tops == sorted(tops, reverse=True)
    across = [edge for edge, loose in zip(edges, layout.loose, strict=True) if loose]
    assert across == [(2, 3), (1, 4), (0, 5)]


def test_edges_that_would_need_too_many_bends_are_drawn_straight(monkeypatch):
    monkeypatch.setattr(layered, "BENDS_MAX", 5)
    edges = [*ladder(30), (0, 29)]
    layout = laid_out([(100.0, 38.0)] * 30, edges, [False] * 30)
    assert layout.loose[-1]
    assert not any(layout.loose[:29])
    assert overlaps(layout) == []
