import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.view import plans
from tightship.quantity import format_bytes, parse_bytes
from tightship.view.picture import Picture, Rectangle, Step, picture_of_buffers
from tightship.view.report import report, to_json
from tightship.view.text import display_width

NAMES = st.one_of(
    st.text(min_size=1, max_size=200),
    st.text("中文", min_size=1, max_size=100),
    st.text("a\n\r\x1b\x85", min_size=1, max_size=9),
)


def test_the_first_word_is_the_number_that_counts():
    picture = plans.cnn()
    assert report(picture).startswith(format_bytes(picture.peak_bytes))
    assert report(picture, bold=True).startswith(
        f"\x1b[1m{format_bytes(picture.peak_bytes)}\x1b[0m"
    )
    assert "\x1b" not in report(picture)


def test_the_report_names_every_part_and_every_strategy():
    picture = plans.cnn()
    text = report(picture)
    for name, size in [*picture.parts.items(), *picture.strategies.items()]:
        assert any(name in line and format_bytes(size) in line for line in text.splitlines())
    assert "lower bound" in text
    assert f"step {picture.peak_step()} of 60" in text


def test_the_limit_that_is_offered_holds_the_plan():
    picture = plans.cnn()
    words = report(picture).split()
    assert parse_bytes(words[words.index("--max-memory") + 1]) >= picture.peak_bytes


def test_the_report_fits_a_screen():
    for picture in (plans.cnn(), plans.wide(2000), plans.bounded()):
        lines = report(picture).splitlines()
        assert len(lines) <= 40
        assert max(map(display_width, lines)) <= 100


def named(name, operator):
    steps = (Step(name, operator, "numpy", 64, dynamic_reason=name),)
    return Picture(
        name,
        64,
        64,
        (Rectangle(name, 64, 0, 0, 1),),
        steps,
        parts={"weights": 1},
        strategies={name: 64},
        key={name: operator},
        inputs={name: name},
        outputs={name: name},
    )


@given(NAMES, NAMES)
def test_no_name_breaks_out_of_its_line(name, operator):
    lines = report(named(name, operator)).split("\n")
    assert max(map(display_width, lines)) <= 100
    assert len(lines) == len(report(named("plain", "Conv")).split("\n"))
    assert not set("\r\x1b\x85") & set("".join(lines))


def test_a_bounded_plan_gives_its_steps_and_reasons_and_offers_no_limit():
    text = report(plans.bounded())
    assert "bounded: 1 step" in text
    assert "NonZero" in text
    assert "rows depend on data" in text
    assert "--max-memory" not in text


def test_a_plan_without_a_model_reports_its_arena():
    picture = picture_of_buffers("plan.csv", [("a", 0, 2, 1024, 0), ("b", 1, 3, 1024, 1024)], 2048)
    text = report(picture)
    assert text.startswith("2.00 KiB arena of plan.csv")
    assert "weights" not in text
    assert "a" in text


def test_an_empty_plan_has_a_report():
    assert report(Picture("empty", 0, 0, ())).startswith("0 B arena of empty")


@pytest.mark.parametrize("picture", [plans.cnn(), plans.bounded()], ids=["exact", "bounded"])
def test_json_holds_the_plan_in_whole_bytes(picture):
    data = json.loads(json.dumps(to_json(picture)))
    assert data["peak_bytes"] == picture.peak_bytes
    assert data["exact"] == picture.is_exact
    assert data["peak_bytes"] == sum(
        data[f"{part}_bytes"] for part in ("arena", "weights", "inputs_and_outputs", "runtime")
    )
    assert len(data["tensors"]) == len(picture.rectangles)
    assert len(data["steps"]) == len(picture.steps)
    assert data["live_at_peak"] == [r.name for r in picture.live_at(data["peak_step"])]
    for tensor in data["tensors"]:
        assert isinstance(tensor["size_bytes"], int)
