"""Responses with texts, as JSON."""

import json
import os
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from tightship.driver.openai.openai_error import ApiError
from tightship.driver.texts.answer import Ended

DONE = b"data: [DONE]\n\n"
"""Last event of a stream."""


def _identifier() -> str:
    return os.urandom(12).hex()


@dataclass(frozen=True, slots=True)
class TextResponse:
    """Response to one request.

    Attributes:
        model: Name of the model.
        is_chat: Whether it answers messages, rather than completes a text.
        serial: Id of the response, without its kind.
        created: Time of the request, in seconds since 1970.
    """

    model: str
    is_chat: bool
    serial: str = field(default_factory=_identifier)
    created: int = field(default_factory=lambda: int(time.time()))

    def whole(self, text: str, end: Ended) -> bytes:
        """Return the body of a response that comes at once."""
        choice: dict[str, Any] = {"index": 0, "finish_reason": end.finish_reason, "logprobs": None}
        if self.is_chat:
            choice["message"] = {"role": "assistant", "content": text, "refusal": None}
        else:
            choice["text"] = text
        kind = "chat.completion" if self.is_chat else "text_completion"
        return json.dumps({**self._head(kind), "choices": [choice], "usage": usage(end)}).encode()

    def begun(self) -> bytes:
        """Return the first event of a stream; none for a completion."""
        if not self.is_chat:
            return b""
        return self._event({"delta": {"role": "assistant", "content": ""}}, None)

    def piece(self, text: str) -> bytes:
        """Return the event of a piece."""
        return self._event(self._delta(text), None)

    def ended(self, end: Ended, *, has_usage: bool) -> bytes:
        """Return the last events of a stream."""
        delta: dict[str, Any] = {"delta": {}} if self.is_chat else {"text": ""}
        last = self._event(delta, end.finish_reason)
        if has_usage:
            said = {**self._head(self._chunk), "choices": [], "usage": usage(end)}
            last += event(said)
        return last + DONE

    def failed(self, refusal: ApiError) -> bytes:
        """Return the last event of a stream that fails."""
        return b"data: " + refusal.body + b"\n\n"

    @property
    def _chunk(self) -> str:
        return "chat.completion.chunk" if self.is_chat else "text_completion"

    def _delta(self, text: str) -> dict[str, Any]:
        return {"delta": {"content": text}} if self.is_chat else {"text": text}

    def _event(self, delta: dict[str, Any], finish_reason: str | None) -> bytes:
        choice = {"index": 0, **delta, "finish_reason": finish_reason, "logprobs": None}
        return event({**self._head(self._chunk), "choices": [choice]})

    def _head(self, kind: str) -> dict[str, Any]:
        prefix = "chatcmpl" if self.is_chat else "cmpl"
        return {
            "id": f"{prefix}-{self.serial}", "object": kind, "created": self.created,
            "model": self.model,
        }  # fmt: skip


def usage(end: Ended) -> dict[str, Any]:
    """Return the counts of an answer."""
    return {
        "prompt_tokens": end.prompt_tokens,
        "completion_tokens": end.tokens,
        "total_tokens": end.prompt_tokens + end.tokens,
        "prompt_tokens_details": {"cached_tokens": end.cached_tokens},
    }


def event(said: Mapping[str, Any]) -> bytes:
    """Return an event of a stream."""
    return b"data: " + json.dumps(said).encode() + b"\n\n"
