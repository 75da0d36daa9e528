"""Results print as one short line, or as a table in a notebook."""

import pickle
from dataclasses import dataclass, field

import numpy as np
import pytest

import tightship
from tests.small_models import dense
from tests.zoo import light
from tightship.brief import Rows, brief
from tightship.difference import compare_plans
from tightship.lengths import OpenLengths
from tightship.planner import place_schedule
from tightship.view.picture import Picture

LINE_MAX = 700


@brief
@dataclass(frozen=True)
class Point:
    name: str
    numbers: tuple[int, ...] = ()
    _hidden: int = 3
    quiet: int = field(default=4, repr=False)


def test_a_text_has_the_public_fields_and_counts_of_items():
    assert repr(Point("a", (1, 2))) == "Point(name='a', numbers=(1, 2))"
    assert repr(Point("a" * 100, tuple(range(1000)))).endswith("…, numbers=<1000 items>)")
    rows = "<tr><th>name</th><td>&lt;b&gt;</td></tr><tr><th>numbers</th><td>()</td></tr>"
    assert Point("<b>")._repr_html_() == f"<table>{rows}</table>"


@pytest.mark.parametrize("shape", [(), (3,), (2, 1000)])
def test_an_array_is_shown_by_its_type_and_shape(shape):
    text = repr(Point("a", np.zeros(shape, np.float32)))
    assert text == f"Point(name='a', numbers=<float32 {list(shape)}>)"


def test_rows_are_a_tuple_with_a_short_text():
    rows = Rows(Point(f"p{index}") for index in range(200))
    assert rows == tuple(rows)
    assert pickle.loads(pickle.dumps(rows)) == rows
    assert repr(rows) == "<200 of Point: p0, p1, p2, …>"
    assert repr(Rows([1, 2])) == "(1, 2)"
    assert rows._repr_html_().count("<tr>") == 101
    assert rows._repr_html_().endswith("<p>… and 100 more</p>")
    assert Rows()._repr_html_() == "<p>none</p>"


@pytest.fixture(scope="module")
def results():
    """Results of public calls, of a network of 58 steps where that makes them long."""
    plan = tightship.plan(light.path_of("resnet50"))
    with tightship.load(dense()[0], shapes={"batch": 4}) as model:
        profile = model.profile({"x": np.zeros((4, 32), np.float32)}, repeat=20)
        statistics = model.memory_stats()
    schedule = tightship.planner.Schedule(
        tuple(tightship.planner.ScheduledValue(f"v{i}", 64) for i in range(100)),
        tuple(tightship.planner.Step(f"s{i}", "Op", (i - 1,) if i else (), (i,))
              for i in range(100)),
    )  # fmt: skip
    placed = place_schedule(schedule)
    lengths = OpenLengths.of(dense()[0])
    assert lengths is not None
    return [
        plan, plan.tensors, plan.steps, plan.weights, plan.picture(), plan.arena.problem,
        profile, profile.timing, statistics, schedule, placed, placed.buffers,
        compare_plans(plan, plan), lengths, lengths.peaks("batch"),
    ]  # fmt: skip


def test_texts_of_results_are_short_lines(results):
    long = {type(each).__name__: len(repr(each)) for each in results if len(repr(each)) > LINE_MAX}
    assert long == {}
    assert [each for each in results if "\n" in repr(each)] == []


def test_results_have_tables_or_pictures(results):
    assert [type(each).__name__ for each in results if not each._repr_html_().startswith("<")] == []


def test_fields_of_a_picture_are_counted(results):
    picture = next(each for each in results if isinstance(each, Picture))
    assert f"steps=<{len(picture.steps)} of PlannedStep" not in repr(picture)
    assert f"rectangles=<{len(picture.rectangles)} items>" in repr(picture)


def test_some_of_the_rows_are_rows() -> None:
    rows = Rows(range(10))
    assert rows[3] == 3
    assert type(rows[2:5]) is Rows
    assert rows[2:5] == (2, 3, 4)
    assert rows[::-1][0] == 9
    assert rows[20:]._repr_html_() == "<p>none</p>"
