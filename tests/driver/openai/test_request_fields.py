"""Fields of requests."""

from typing import Any

import pytest

from tightship.driver.openai.openai_error import ApiError
from tightship.driver.openai.request_fields import Fields


@pytest.mark.parametrize(
    "given",
    [
        {"n": 1, "tools": [], "logprobs": False, "presence_penalty": 0.0, "logit_bias": {}},
        {"tools": None, "user": "me", "metadata": {"a": "b"}, "best_of": 1},
        {"suffix": "", "store": False, "echo": False},
    ],
)
def test_fields_that_say_nothing_are_taken(given: dict[str, Any]) -> None:
    assert not Fields(given, ("model",)).has("model")


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("tools", [{"type": "function"}]), ("n", 2), ("logprobs", True), ("logprobs", 1),
        ("presence_penalty", 0.5), ("logit_bias", {"1": 3}), ("audio", {}), ("n", True),
        ("reasoning_effort", "low"),
    ],
)  # fmt: skip
def test_fields_that_are_not_supported_are_refused_by_name(name: str, value: object) -> None:
    with pytest.raises(ApiError, match=f"`{name}` is not supported.*supported are model") as found:
        Fields({name: value}, ("model",))
    assert (found.value.status, found.value.param) == (400, name)


def test_values_of_another_type_are_refused() -> None:
    fields = Fields({"a": "x", "b": 1, "c": True, "d": 0.5}, "abcde")
    assert (fields.text("a"), fields.integer("b"), fields.flag("c"), fields.number("d", 1.0)) == (
        "x", 1, True, 0.5
    )  # fmt: skip
    assert (fields.integer("e"), fields.flag("e"), fields.number("e", 2.0)) == (None, False, 2.0)
    for read in (
        lambda: fields.text("b"), lambda: fields.text("e"), lambda: fields.integer("c"),
        lambda: fields.integer("d"), lambda: fields.flag("b"), lambda: fields.number("a", 1.0),
        lambda: fields.number("c", 1.0), lambda: Fields([], "a"),
    ):  # fmt: skip
        with pytest.raises(ApiError):
            read()
