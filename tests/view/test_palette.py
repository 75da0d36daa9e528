"""Colours and groups of buffers, by operator and by module."""

from dataclasses import replace

import pytest

from tests.view import plans
from tightship.view.palette import OTHER_SLOT, SCRATCH_SLOT, by_group, colouring, modules_of
from tightship.view.picture import Picture, Rectangle, Step


def of_names(names):
    steps = tuple(Step(name, "Add", "", 64) for name in names)
    rectangles = tuple(Rectangle(f"v{i}", 64, 0, i, i + 1) for i in range(len(names)))
    return Picture("p", 64, 64, rectangles, steps)


def test_a_buffers_module_is_that_of_the_step_that_makes_it():
    names = ["/encoder/layer.0/MatMul", "/encoder/layer.0/Add", "/encoder/layer.1/MatMul", "Add"]
    assert modules_of(of_names(names)) == [
        "/encoder/layer.0",
        "/encoder/layer.0",
        "/encoder/layer.1",
        "",
    ]


def test_without_a_module_in_the_steps_name_that_of_the_buffers_own_counts():
    picture = of_names(["n1"])
    rectangle = replace(picture.rectangles[0], name="block.2/relu")
    assert modules_of(replace(picture, rectangles=(rectangle,))) == ["block.2"]


def test_many_modules_are_told_apart_at_a_coarser_level():
    names = [f"/block.{i}/part.{j}/Add" for i in range(12) for j in range(5)]
    found = modules_of(of_names(names))
    assert set(found) == {f"/block.{i}" for i in range(12)}


def test_groups_with_the_most_bytes_and_steps_have_colours_of_their_own():
    picture = plans.cnn()
    groups = [f"group{min(i, 8)}" for i in range(len(picture.rectangles))]
    found = by_group(picture, groups, "groups")
    labels = {family.slot: family.label for family in found.families}
    assert labels[OTHER_SLOT].endswith("other groups")
    for rectangle, slot in zip(picture.rectangles, found.slots, strict=True):
        assert (slot == SCRATCH_SLOT) == (rectangle.kind == "scratch")


@pytest.mark.parametrize("count", [0, 1])
def test_a_plan_of_buffers_is_coloured_by_size(count):
    rectangles = (Rectangle("a", 64, 0, 0, 1, "buffer"),)[:count]
    assert colouring(Picture("p", 64, 64, rectangles)).slots == (0,) * count
