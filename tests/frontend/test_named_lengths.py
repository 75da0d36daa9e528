"""Shapes that a caller gives for example inputs."""

import pytest

from tightship.errors import InputError
from tightship.frontend.named_lengths import NamedLengths


def test_texts_name_open_lengths():
    named = NamedLengths({"a": ("n", 4), "b": ("n", "m"), "m": 9})
    named.check_names(["a", "b", "c"])
    assert [named.applied("a", (2, 5)), named.applied("b", (2, 3))] == [(2, 4), (2, 9)]
    assert named.applied("c", (7,)) == (7,)
    assert named.bound == {"a": (2, 4), "b": (2, 9)}
    assert (named.lengths, named.declared("b")) == ({"n": 2, "m": 9}, ("n", "m"))


@pytest.mark.parametrize(
    ("shapes", "message"),
    [
        ({"a": (1,)}, "give 2 lengths"),
        ({"a": 3}, "give 2 lengths"),
        ({"a": ("n", "n")}, "`n` is 2 in one example input and 5"),
        ({"a": ("2*n", 4)}, "is not a name"),
    ],
)
def test_what_does_not_fit_is_refused(shapes, message):
    with pytest.raises(InputError, match=message):
        NamedLengths(shapes).applied("a", (2, 5))


def test_unknown_names_are_refused():
    with pytest.raises(InputError, match="no input `x`; its inputs are: `a`"):
        NamedLengths({"x": (1,)}).check_names(["a"])
