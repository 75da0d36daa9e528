"""Requests for texts."""

import json
from typing import Any

import pytest

from tightship.driver.openai.openai_error import ApiError
from tightship.driver.openai.text_request import read_chat, read_completion
from tightship.text import Sampling

USER = {"role": "user", "content": "Hello"}


def body(**fields: Any) -> bytes:
    return json.dumps({"model": "m", **fields}).encode()


def test_a_chat_is_read() -> None:
    found = read_chat(body(
        messages=[{"role": "system", "content": [{"type": "text", "text": "Be "},
                                                 {"type": "text", "text": "brief."}]}, USER],
        max_completion_tokens=7, temperature=0, top_p=0.5, seed=3, stop="\n", stream=True,
        stream_options={"include_usage": True}, top_k=5,
    ))  # fmt: skip
    assert found.prompt == [{"role": "system", "content": "Be brief."}, USER]
    assert found.wanted.sampling == Sampling(1.0, 5, 0.5, 0.05, 0.0, 3)
    assert (found.wanted.max_tokens, found.wanted.stop) == (7, ("\n",))
    assert (found.model, found.is_chat, found.streams, found.has_usage) == ("m", True, True, True)
    plain = read_chat(body(messages=[USER]))
    assert (plain.wanted.max_tokens, plain.wanted.sampling, plain.streams) == (
        None, Sampling(), False
    )  # fmt: skip


@pytest.mark.parametrize(
    ("prompt", "read"), [("a", "a"), (["a"], "a"), ([1, 2], [1, 2]), ([[1, 2]], [1, 2])]
)
def test_a_completion_is_read(prompt: object, read: object) -> None:
    found = read_completion(body(prompt=prompt, stop=["x", "y"]))
    assert (found.prompt, found.is_chat, found.wanted.max_tokens) == (read, False, 16)
    assert found.wanted.stop == ("x", "y")


@pytest.mark.parametrize(
    ("fields", "param", "message"),
    [
        ({}, "messages", "a list of messages"),
        ({"messages": []}, "messages", "messages is empty"),
        ({"messages": [{"role": "robot", "content": ""}]}, "messages", "no role"),
        ({"messages": ["hello"]}, "messages[0]", "a message with"),
        ({"messages": [{**USER, "tool_calls": [1]}]}, "messages[0].tool_calls", "not supported"),
        ({"messages": [{**USER, "mood": "good"}]}, "messages[0].mood", "not supported"),
        ({"messages": [{"role": "user", "content": [{"type": "image_url"}]}]},
         "messages[0].content[0]", "the type `image_url`; supported is `text`"),
        ({"messages": [USER], "temperature": -1}, "temperature", "must be from 0 to 100"),
        ({"messages": [USER], "max_tokens": 0}, "max_tokens", "must be at least 1"),
        ({"messages": [USER], "max_completion_tokens": 0}, "max_completion_tokens", "at least 1"),
        ({"messages": [USER], "seed": "x"}, "seed", "an integer"),
        ({"messages": [USER], "stop": [""]}, "stop", "a text, or a list"),
        ({"messages": [USER], "stream_options": {"x": 1}}, "stream_options", "include_usage"),
        ({"messages": [USER], "tools": [{}]}, "tools", "not supported"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_named(fields: dict[str, Any], param: str, message: str) -> None:
    with pytest.raises(ApiError, match=message) as found:
        read_chat(body(**fields))
    assert (found.value.param, found.value.status) == (param, 400)


def test_a_response_may_have_a_schema() -> None:
    def schema(form: object) -> str | None:
        return read_chat(body(messages=[USER], response_format=form)).wanted.schema

    assert schema({"type": "text"}) is schema(None) is None
    assert json.loads(schema({"type": "json_object"}) or "") == {"type": "object"}
    wanted = {"type": "object", "properties": {"a": {"type": "integer"}}}
    named = {"name": "n", "strict": True, "schema": wanted}
    assert json.loads(schema({"type": "json_schema", "json_schema": named}) or "") == wanted
    for wrong in ({"type": "grammar"}, {"type": "json_schema"}, "json", {"type": "json_schema",
                  "json_schema": {"name": "n"}}):  # fmt: skip
        with pytest.raises(ApiError, match="`response_format` must be"):
            schema(wrong)


@pytest.mark.parametrize("prompt", ["", [], ["a", "b"], [[1], [2]], 7, [1.5], None])
def test_prompts_that_are_none_are_refused(prompt: object) -> None:
    with pytest.raises(ApiError) as found:
        read_completion(body(prompt=prompt))
    assert found.value.param == "prompt"


@pytest.mark.parametrize("raw", [b"{", b"", b"[" * 100_000, b"\xff", b"7"])
def test_bodies_that_are_not_json_objects_are_refused(raw: bytes) -> None:
    with pytest.raises(ApiError, match="the body is not"):
        read_chat(raw)
