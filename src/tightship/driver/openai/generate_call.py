"""Calls of the inference protocol's extension for texts: `generate` and `generate_stream`."""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from urllib.parse import unquote

from tightship.driver.openai.openai_error import ApiError
from tightship.driver.openai.request_fields import Fields, wrong
from tightship.driver.openai.text_request import (
    COMPLETION_TOKENS,
    OPTIONS,
    TextRequest,
    parsed,
    request_of,
)
from tightship.driver.openai.text_response import event
from tightship.driver.texts.answer import Ended

PATH = re.compile(r"/v2/models/([^/]+)(?:/versions/([^/]+))?/(generate|generate_stream)")
OTHER_NAMES = {"repetition_penalty": "repeat_penalty", "random_seed": "seed", "stop_words": "stop"}
"""Names that Triton's backends have for fields."""
OWN = ("text_input", "id", "exclude_input_in_output")
KNOWN = (*OWN, *(name for name in OPTIONS if name != "stream_options"))


@dataclass(frozen=True, slots=True)
class GenerateCall:
    """Call for a text, by its path.

    Attributes:
        model: Name of the model.
        version: Version of the model; None for the latest.
        streams: Whether pieces are sent as they come.
    """

    model: str
    version: str | None
    streams: bool

    @classmethod
    def of(cls, path: str) -> "GenerateCall | None":
        """Return the call of a path; None if it is another."""
        found = PATH.fullmatch(path)
        if found is None:
            return None
        name, version, kind = found.groups()
        return cls(unquote(name), version and unquote(version), kind == "generate_stream")

    def read(self, body: bytes | bytearray | memoryview) -> "tuple[TextRequest, GenerateResponse]":
        """Read the body: fields, some of which may be in `parameters`.

        Raises:
            ApiError: A field is missing, wrong or not supported.
        """
        given = parsed(body)
        more = given.get("parameters") if isinstance(given, dict) else None
        if not isinstance(given, dict) or not isinstance(more, dict | None):
            raise wrong("parameters", "an object, in an object")
        merged = {**given, **(more or {}), "model": self.model}
        merged.pop("parameters", None)
        named = {OTHER_NAMES.get(name, name): value for name, value in merged.items()}
        fields = Fields(named, KNOWN)
        prompt, known = fields.get("text_input"), fields.get("id")
        if not isinstance(prompt, str) or not prompt:
            raise wrong("text_input", "a text that is not empty")
        if known is not None and not isinstance(known, str):
            raise wrong("id", "a text")
        if fields.flag("stream") and not self.streams:
            raise ApiError(400, "`stream` is for `generate_stream`", param="stream")
        if fields.get("exclude_input_in_output") not in (None, True):
            raise wrong("exclude_input_in_output", "true; the text is the answer alone")
        count = fields.integer("max_tokens")
        count = COMPLETION_TOKENS if count is None else count
        request = request_of(fields, prompt, count, "max_tokens", streams=self.streams)
        return request, GenerateResponse(self.model, self.version or "", known)


@dataclass(slots=True)
class GenerateResponse:
    """Response to one call.

    Attributes:
        model: Name of the model.
        version: Its version; empty if the call names none.
        serial: Id that the client gave; None for none.
    """

    model: str
    version: str
    serial: str | None
    _is_empty: bool = field(default=True)

    def whole(self, text: str, _: Ended) -> bytes:
        """Return the body of a response that comes at once."""
        return json.dumps(self._said(text)).encode()

    def begun(self) -> bytes:
        """Return the first event of a stream: none."""
        return b""

    def piece(self, text: str) -> bytes:
        """Return the event of a piece."""
        self._is_empty = False
        return event(self._said(text))

    def ended(self, _: Ended, *, has_usage: bool) -> bytes:  # noqa: ARG002  as others
        """Return the last event of a stream: an empty text if nothing came."""
        return event(self._said("")) if self._is_empty else b""

    def failed(self, refusal: ApiError) -> bytes:
        """Return the last event of a stream that fails."""
        return event(error_of(refusal))

    def _said(self, text: str) -> Mapping[str, str]:
        named = {} if self.serial is None else {"id": self.serial}
        return {**named, "model_name": self.model, "model_version": self.version,
                "text_output": text}  # fmt: skip


def error_of(refusal: ApiError) -> dict[str, str]:
    """Return a refusal as clients of the inference protocol read it."""
    return {"error": str(refusal)}
