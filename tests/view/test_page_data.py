"""Data of a page: columns, groupings and texts."""

import json

from tests.view import plans
from tests.view.shown import two_plans
from tightship.view.page_data import columns, page_data, texts
from tightship.view.page_extras import NOTHING, Extras, Measured
from tightship.view.picture import picture_of_buffers


def read(picture, extras=NOTHING):
    return json.loads(page_data(picture, extras))


def test_each_grouping_has_a_colour_and_a_group_for_each_buffer():
    picture = plans.cnn()
    groupings = columns(picture)["groupings"]
    assert [each["name"] for each in groupings] == ["operator", "module"]
    for each in groupings:
        assert len(each["slots"]) == len(each["groups"]["at"]) == len(picture.rectangles)
        assert {slot for slot, _ in each["families"]} == set(each["slots"])


def test_buffers_without_a_model_are_grouped_by_size():
    picture = picture_of_buffers("b", [("a", 0, 1, 1000, 0), ("b", 0, 1, 1, 1000)], 1001)
    (grouping,) = columns(picture)["groupings"]
    assert grouping["name"] == "size"
    assert len(grouping["groups"]["words"]) == 2


def test_a_plan_alone_has_nothing_beside_it():
    assert not {"old", "times", "lengths"} & read(plans.cnn()).keys()


def test_additions_are_in_the_data():
    new, overlay = two_plans()
    values = read(new, Extras(overlay=overlay, measured=Measured((1, 2, 3, 4, 5, 6))))
    assert values["old"]["names"] == [r.name for r in overlay.old.rectangles]
    assert values["pairs"] == list(overlay.pairs)
    assert values["times"] == [1, 2, 3, 4, 5, 6]
    lengths = read(new, Extras(length_name="n", lengths=[(1, new), (2, overlay.old)]))["lengths"]
    assert [each["length"] for each in lengths] == [1, 2]
    assert [each["plan"] is None for each in lengths] == [True, False]


def test_texts_are_escaped():
    picture = plans.picture([], [], title="t", parts={"weights": 1})
    hostile = "<script>"
    found = texts(type(picture)("t", 0, 0, (), parts={hostile: 1}, strategies={hostile: 1},
                                inputs={hostile: hostile}))  # fmt: skip
    assert hostile not in "".join(found.values())
    assert "&lt;script&gt;" in found["facts"]
