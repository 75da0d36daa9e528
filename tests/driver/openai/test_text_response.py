"""Responses with texts."""

import json
from typing import Any

import pytest

from tightship.driver.openai.openai_error import ApiError
from tightship.driver.openai.text_response import DONE, TextResponse
from tightship.driver.texts.answer import Ended

END = Ended("stop", 7, 3, 2)
USAGE = {"prompt_tokens": 7, "completion_tokens": 2, "total_tokens": 9,
         "prompt_tokens_details": {"cached_tokens": 3}}  # fmt: skip


def events(raw: bytes) -> list[Any]:
    parts = raw.split(b"\n\n")
    assert parts.pop() == b""
    return [json.loads(part.removeprefix(b"data: ")) for part in parts]


@pytest.mark.parametrize("is_chat", [True, False])
def test_a_whole_answer_has_its_text_and_counts(is_chat: bool) -> None:
    said = json.loads(TextResponse("m", is_chat).whole("hi", END))
    (choice,) = said["choices"]
    text = choice["message"]["content"] if is_chat else choice["text"]
    assert (text, choice["finish_reason"], said["usage"], said["model"]) == (
        "hi", "stop", USAGE, "m"
    )  # fmt: skip
    assert said["object"] == ("chat.completion" if is_chat else "text_completion")


def test_a_stream_of_a_chat_begins_with_a_role_and_ends_with_counts() -> None:
    response = TextResponse("m", is_chat=True)
    (begun,) = events(response.begun())
    (piece,) = events(response.piece("hé"))
    assert begun["choices"][0]["delta"]["role"] == "assistant"
    assert piece["choices"][0] == {
        "index": 0, "delta": {"content": "hé"}, "finish_reason": None, "logprobs": None
    }  # fmt: skip
    last = response.ended(END, has_usage=True)
    assert last.endswith(DONE)
    stop, counts = events(last.removesuffix(DONE))
    assert (stop["choices"][0]["finish_reason"], counts["usage"]) == ("stop", USAGE)
    assert counts["choices"] == []
    assert begun["id"] == piece["id"] == counts["id"]
    failed = events(TextResponse("m", is_chat=True).failed(ApiError(500, "no")))
    assert failed[0]["error"]["message"] == "no"


def test_a_stream_of_a_completion_has_texts() -> None:
    response = TextResponse("m", is_chat=False)
    assert response.begun() == b""
    assert events(response.piece("a"))[0]["choices"][0]["text"] == "a"
    (stop,) = events(response.ended(END, has_usage=False).removesuffix(DONE))
    assert stop["object"] == "text_completion"
