"""The picture of a decoder's sessions: its lines lie where the plans say."""

import xml.etree.ElementTree as ET

import pytest

from tightship.view.session_picture import PlannedContext, SessionPicture
from tightship.view.session_svg import session_svg

SVG = "{http://www.w3.org/2000/svg}"
MIB = 1 << 20
TOKEN = 4096


def picture(contexts=(1024, 4096, 8192), title="a decoder.onnx", sessions=(1, 4, 8), **more):
    parts = {"weights": 40 * MIB, "arena": 6 * MIB, "in and out": MIB, "runtime": 20 * MIB}
    planned = tuple(PlannedContext(each, parts, each * TOKEN) for each in contexts)
    return SessionPicture(title, planned, sessions, **{"asked": frozenset(contexts), **more})


def drawn(what):
    return ET.fromstring(session_svg(what))


def shapes(root, tag, style):
    return [each for each in root.iter(f"{SVG}{tag}") if style in each.get("class", "").split()]


def texts(root):
    return ["".join(element.itertext()) for element in root.iter(f"{SVG}text")]


def points(shape):
    return [tuple(map(float, each.split(","))) for each in shape.get("points").split()]


def places(root, tokens, size_bytes):
    """Point of an amount by the labels of the axes, two of each."""
    labels = {(text.text, text.get("text-anchor")): text for text in root.iter(f"{SVG}text")}
    x0, x1 = (float(labels[each, "middle"].get("x")) for each in ("0", "8,192"))
    y0, y1 = (float(labels[each, "end"].get("y")) - 4 for each in ("0", "300 MiB"))
    return (
        pytest.approx(x0 + tokens / 8192 * (x1 - x0), abs=0.2),
        pytest.approx(y0 + size_bytes / (300 * MIB) * (y1 - y0), abs=0.2),
    )


def test_a_line_for_each_number_of_sessions_goes_through_its_peaks():
    root = drawn(picture())
    lines = shapes(root, "polyline", "tc-peak")
    assert len(lines) == 3
    for sessions, line in zip((1, 4, 8), lines, strict=True):
        peaks = [67 * MIB + sessions * tokens * TOKEN for tokens in (0, 1024, 4096, 8192)]
        expected = zip((0, 1024, 4096, 8192), peaks, strict=True)
        assert points(line) == [places(root, *point) for point in expected]
    hints = [each.text for each in root.iter(f"{SVG}title")]
    assert "4 sessions of 4,096 tokens: 131.0 MiB" in hints
    assert "1 session of 8,192 tokens: 99.0 MiB" in hints
    assert len(shapes(root, "circle", "tc-point")) == 9


def test_what_all_sessions_share_lies_at_the_foot_part_by_part():
    root = drawn(picture())
    tops = [40, 46, 47, 67]
    for index, (top, below) in enumerate(zip(tops, [0, *tops], strict=False)):
        (band,) = shapes(root, "polygon", f"tc-part-{index}")
        assert points(band)[0] == places(root, 0, top * MIB)
        assert points(band)[-1] == places(root, 0, below * MIB)
        assert places(root, 8192, top * MIB) in points(band)
    assert {"weights 40.0 MiB", "arena 6.00 MiB", "runtime 20.0 MiB"} <= set(texts(root))
    assert "peak memory (bytes)" in texts(root)
    assert "context (tokens of each session)" in texts(root)


def test_the_largest_contexts_are_marked_on_the_limit():
    largest = {1: 0, 4: 4096, 8: 2048}
    root = drawn(picture((1024, 2048, 4096, 8192), limit_bytes=131 * MIB, largest=largest))
    limits = shapes(root, "line", "tc-limit")
    level = places(root, 0, 131 * MIB)[1]
    assert sum(float(each.get("y1")) == level for each in limits) == 1
    marks = shapes(root, "circle", "tc-most")
    found = [(float(each.get("cx")), float(each.get("cy"))) for each in marks]
    assert found == [places(root, 4096, 131 * MIB), places(root, 2048, 131 * MIB)]
    assert {"context up to 4,096 tokens", "no context fits"} <= set(texts(root))


def test_a_line_ends_at_its_largest_context_if_none_was_asked_for():
    drawing = picture((2048, 8192), sessions=(2, 8), asked=frozenset(), limit_bytes=131 * MIB,
                      largest={2: 8192, 8: 2048})  # fmt: skip
    assert [tokens for tokens, _ in drawing.points(8)] == [0, 2048]
    lines = shapes(drawn(drawing), "polyline", "tc-peak")
    assert [len(points(each)) for each in lines] == [3, 2]


def test_a_limit_far_above_is_text():
    root = drawn(picture(limit_bytes=1 << 40, largest={1: 9, 4: 9, 8: 9}))
    assert "limit 1.00 TiB, above this" in texts(root)
    assert len(shapes(root, "line", "tc-limit")) == 1  # in the key


def test_bytes_that_grow_with_the_context_bend_the_line():
    small, large = ({"arena": size * MIB} for size in (1, 9))
    planned = (PlannedContext(64, small, MIB), PlannedContext(128, large, 2 * MIB))
    drawing = SessionPicture("bent", planned, (3,), frozenset({64, 128}))
    assert drawing.points(3) == [(0, MIB), (64, 4 * MIB), (128, 15 * MIB)]
    (line,) = shapes(drawn(drawing), "polyline", "tc-peak")
    (band,) = shapes(drawn(drawing), "polygon", "tc-part-0")
    heights = [y for _, y in points(band)[:3]]
    assert heights[0] == heights[1] > heights[2] > points(line)[2][1]


@pytest.mark.parametrize("count", [1, 40])
def test_any_number_of_lines_has_room_for_its_key(count):
    root = drawn(picture(sessions=tuple(range(1, count + 1))))
    height = float(root.get("viewBox").split()[3])
    lowest = max(float(text.get("y")) for text in root.iter(f"{SVG}text"))
    assert lowest < height - 8


def test_a_title_is_text():
    assert "<script>&'\"" in texts(drawn(picture(title="<script>&'\"")))[0]
