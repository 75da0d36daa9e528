from itertools import pairwise

from tests.models import parse
from tests.zoo.inception_bn import inception_bn
from tightship.cost import cost_of
from tightship.cost.picture import picture_of
from tightship.frontend.onnx import read_bytes
from tightship.view.svg import svg
from tightship.view.timeline import timeline


def picture(model):
    return picture_of(cost_of(read_bytes(model), "net"))


def test_no_two_rectangles_share_bytes_but_where_one_is_written_over_the_other():
    drawn = picture(inception_bn(2, 96, 4).model)
    assert drawn.arena_bytes == drawn.lower_bound_bytes
    for step in range(drawn.step_count):
        live = sorted(drawn.live_at(step), key=lambda r: r.offset_bytes)
        for low, high in pairwise(live):
            written_over = {low.name, high.name} & {low.shares_with, high.shares_with}
            assert low.offset_bytes + low.size_bytes <= high.offset_bytes or written_over


def test_a_view_lengthens_what_it_shows_and_is_not_drawn():
    text = """net (float[8] x) => (float[8] z) {
        a = Relu (x)
        v = Identity (a)
        b = Sqrt (x)
        z = Add (v, b)
    }"""
    drawn = picture(parse(text).SerializeToString())
    assert {r.name: (r.start_step, r.stop_step) for r in drawn.rectangles} == {
        "a": (0, 4),
        "b": (2, 4),
        "z": (3, 4),
    }
    assert "z" in [r.name for r in drawn.rectangles if r.shares_with]


def test_it_is_drawn_as_svg_and_as_a_page():
    drawn = picture(inception_bn(2, 96, 4).model)
    assert "graph bytes" in svg(drawn)
    assert "graph bytes" in timeline(drawn)
