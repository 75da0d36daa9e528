"""Values of metadata, by key and type."""

from collections.abc import Callable

import pytest

from tests.frontend.gguf.written import value
from tightship.errors import FormatError
from tightship.frontend.gguf.cursor import Cursor
from tightship.frontend.gguf.fields import read_field
from tightship.frontend.gguf.metadata import Metadata


def metadata(**fields: object) -> Metadata:
    found = {f"a.{key}": read_field(Cursor(memoryview(value(each)), "m"), f"a.{key}")
             for key, each in fields.items()}  # fmt: skip
    return Metadata("m", found, "a")


def test_values_are_found_or_default() -> None:
    found = metadata(i=("u64", 7), f=0.5, t="text", n=[1, 2], b=[True, False])
    assert (found.integer("i"), found.integer("j", 3)) == (7, 3)
    assert (found.number("f"), found.number("i"), found.number("g", 1.5)) == (0.5, 7.0, 1.5)
    assert (found.text("t"), found.text("u", "other")) == ("text", "other")
    assert (found.list_of_integers("n"), found.list_of_integers("b")) == ((1, 2), (1, 0))
    assert found.list_of_integers("i") is None
    assert (found.has("i"), found.has("j")) == (True, False)
    assert (found.numbers("n", 2), found.numbers("j", 2), found.texts("j")) == ([1, 2], None, None)
    assert metadata(x=["a", "b"]).texts("x") == ["a", "b"]
    assert (metadata(x=True).flag("x", default=False), found.flag("j", default=True)) == (True,) * 2


@pytest.mark.parametrize(
    ("read", "message"),
    [
        (lambda m: m.integer("x"), "`a.x` is absent; it must be an integer of 1 to"),
        (lambda m: m.integer("zero"), "`a.zero` is 0; it must be an integer of 1 to"),
        (lambda m: m.integer("seven", most=6), "is 7; it must be an integer of 1 to 6"),
        (lambda m: m.integer("flag"), "is True; it must be an integer"),
        (lambda m: m.integer("texts"), "is an array of 1 elements; it must be an integer"),
        (lambda m: m.number("nan"), "is nan; it must be a number above 0"),
        (lambda m: m.number("name"), "is the text 'abc'; it must be a number"),
        (lambda m: m.text("zero"), "is 0; it must be a text"),
        (lambda m: m.list_of_integers("texts"), "it must be an array of integers"),
        (lambda m: m.numbers("texts", 1), "it must be an array of 1 numbers"),
        (lambda m: m.texts("zero"), "is 0; it must be an array of texts"),
        (lambda m: m.flag("zero", default=True), "is 0; it must be a truth value"),
    ],
)
def test_values_that_do_not_fit_are_refused(
    read: Callable[[Metadata], object], message: str
) -> None:
    found = metadata(zero=0, seven=7, flag=True, nan=float("nan"), name="abc", texts=["x"])
    with pytest.raises(FormatError, match=message):
        read(found)
