"""Shapes that a model is loaded with where its file leaves lengths open."""

import pytest

from tightship.loading.first_shapes import LENGTHS, RANKS, shapes_of

IDS = {"ids": ("batch", "seq"), "mask": ("batch", "past + seq"), "past": ("batch", 8, "past", 4)}


def test_symbols_have_one_length_wherever_they_are():
    first = next(iter(shapes_of(IDS, {})))
    assert first == {"ids": (1, 64), "mask": (1, 128), "past": (1, 8, 64, 4)}
    for found, (batch, length) in zip(shapes_of(IDS, {}), LENGTHS, strict=True):
        assert found["ids"] == (batch, length)
        assert found["mask"] == (batch, 2 * length)


def test_what_the_caller_names_stays_and_says_what_its_symbols_are():
    for found in shapes_of(IDS, {"ids": (3, 5)}):
        assert found["ids"] == (3, 5)
        assert found["mask"] == (3, found["past"][2] + 5)
        assert found["past"][0] == 3


@pytest.mark.parametrize(
    ("dimension", "length"),
    [
        (None, 64),
        (7, 7),
        ("n", 64),
        ("n+1", 65),
        ("2*n - m", 64),
        ("n//2", 32),
        ("n//0", 64),
        ("n if n else 1", 64),
        ("import os", 64),
        ("batch-size.0", 64),
        ("?", 64),
    ],
)
def test_a_length_is_computed_where_it_is_an_expression(dimension, length):
    assert next(iter(shapes_of({"x": (1, dimension)}, {}))) == {"x": (1, length)}


def test_an_input_of_any_rank_gets_one_after_it_was_left_out():
    found = list(shapes_of({"x": None, "y": (4,)}, {}))
    assert found[0] == {"y": (4,)}
    assert len(found) == len(RANKS) * len(LENGTHS)
    assert {len(shapes["x"]) for shapes in found if "x" in shapes} == {1, 2, 3, 4}
