"""Lengths that files declare as text."""

import pytest

from tightship.graph.length_expression import evaluate, names_in

LENGTHS = {"past": 3, "new": 2, "batch-size": 7, "none": 0}


@pytest.mark.parametrize(
    ("text", "names", "length"),
    [
        ("past", {"past"}, 3),
        ("past + new", {"past", "new"}, 5),
        ("2*past - new", {"past", "new"}, 4),
        ("2*past - 1", {"past"}, 5),
        ("past - new", {"past", "new"}, 1),
        ("past//new", {"past", "new"}, 1),
        ("past//none", {"past", "none"}, None),
        ("past + other", {"past", "other"}, None),
        ("batch-size", {"batch-size"}, 7),
        ("past-new", {"past-new"}, None),
        ("import os", {"import os"}, None),
        ("f(past)", {"f(past)"}, None),
        ("past**new", {"past**new"}, None),
        ("?", {"?"}, None),
    ],
)
def test_a_length_is_a_name_or_computed_from_names(text, names, length):
    assert names_in(text) == names
    assert evaluate(text, LENGTHS) == length


def test_a_text_that_has_a_length_itself_is_not_computed():
    assert evaluate("past + new", {**LENGTHS, "past + new": 9}) == 9
