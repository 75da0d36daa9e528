"""Requests for texts, read from JSON."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tightship.driver.openai.openai_error import ApiError
from tightship.driver.openai.request_fields import Fields, wrong
from tightship.errors import InputError
from tightship.text.chat_template import check_messages
from tightship.text.generation import Wanted
from tightship.text.sampling import Sampling

OPTIONS = (
    "model", "stream", "stream_options", "max_tokens", "temperature", "top_p", "top_k", "min_p",
    "repeat_penalty", "seed", "stop", "response_format",
)  # fmt: skip
CHAT = (*OPTIONS, "messages", "max_completion_tokens")
COMPLETION = (*OPTIONS, "prompt")
COMPLETION_TOKENS = 16
"""Most tokens of a completion that does not say, as OpenAI has it."""
ANY_OBJECT = '{"type": "object"}'
"""Schema of any JSON object."""
MESSAGE_FIELDS = ("role", "content", "name", "refusal", "audio", "tool_calls", "function_call",
                  "annotations", "tool_call_id")  # fmt: skip


Prompt = list[dict[str, Any]] | str | list[int]


@dataclass(frozen=True, slots=True)
class TextRequest:
    """Request for a text.

    Attributes:
        model: Name of the model.
        prompt: Messages of a chat; a text, or numbers of tokens, to complete.
        wanted: The answer that is wanted.
        streams: Whether pieces are sent as they come.
        has_usage: Whether the counts are sent at the end of a stream.
    """

    model: str
    prompt: Prompt
    wanted: Wanted
    streams: bool
    has_usage: bool

    @property
    def is_chat(self) -> bool:
        """Whether the prompt is messages."""
        prompt = self.prompt
        return not isinstance(prompt, str) and bool(prompt) and isinstance(prompt[0], Mapping)


def read_chat(body: bytes | bytearray | memoryview) -> TextRequest:
    """Read a request for `/v1/chat/completions`.

    Raises:
        ApiError: A field is missing, wrong or not supported.
    """
    fields = Fields(parsed(body), CHAT)
    messages = fields.get("messages")
    if not isinstance(messages, list):
        raise wrong("messages", "a list of messages")
    read = [_message(place, each) for place, each in enumerate(messages)]
    try:
        check_messages(read)
    except InputError as error:
        raise ApiError(400, str(error), param="messages") from None
    name = "max_completion_tokens" if fields.has("max_completion_tokens") else "max_tokens"
    return request_of(fields, read, fields.integer(name), name)


def read_completion(body: bytes | bytearray | memoryview) -> TextRequest:
    """Read a request for `/v1/completions`.

    Raises:
        ApiError: A field is missing, wrong or not supported.
    """
    fields = Fields(parsed(body), COMPLETION)
    prompt = fields.get("prompt")
    if isinstance(prompt, list) and len(prompt) == 1 and isinstance(prompt[0], str | list):
        (prompt,) = prompt
    if isinstance(prompt, list) and any(isinstance(each, str | list) for each in prompt):
        raise ApiError(
            400, "`prompt` has several prompts; one at a time is supported", param="prompt"
        )
    is_numbers = isinstance(prompt, list) and all(type(each) is int for each in prompt)
    if not prompt or not (isinstance(prompt, str) or is_numbers):
        raise wrong("prompt", "a text that is not empty, or numbers of tokens")
    count = fields.integer("max_tokens")
    return request_of(fields, prompt, COMPLETION_TOKENS if count is None else count, "max_tokens")


def parsed(body: bytes | bytearray | memoryview) -> object:
    """Return what a body has in JSON.

    Raises:
        ApiError: It is not JSON.
    """
    try:
        return json.loads(bytes(body))
    except (ValueError, RecursionError):
        raise ApiError(400, "the body is not JSON") from None


def _message(place: int, given: object) -> dict[str, Any]:
    """Read a message; parts of its content are joined.

    Raises:
        ApiError: It has something that is not text.
    """
    name = f"messages[{place}]"
    if not isinstance(given, dict):
        raise wrong(name, "a message with `role` and `content`")
    for field, value in given.items():
        if field not in MESSAGE_FIELDS or (field not in MESSAGE_FIELDS[:3] and value):
            raise ApiError(
                400, f"`{name}.{field}` is not supported; supported are role, content and name",
                code="unsupported_parameter", param=f"{name}.{field}",
            )  # fmt: skip
    content = given.get("content")
    if isinstance(content, list):
        parts = []
        for number, part in enumerate(content):
            kind = part.get("type") if isinstance(part, dict) else None
            if kind != "text" or not isinstance(part.get("text"), str):
                raise ApiError(
                    400,
                    f"`{name}.content[{number}]` is of the type `{kind}`; supported is `text`",
                    code="unsupported_parameter", param=f"{name}.content[{number}]",
                )  # fmt: skip
            parts.append(part["text"])
        content = "".join(parts)
    return {"role": given.get("role"), "content": "" if content is None else content}


def request_of(
    fields: Fields,
    prompt: Prompt,
    count: int | None,
    count_name: str,
    *,
    streams: bool | None = None,
) -> TextRequest:
    """Read the fields that all requests have.

    Args:
        fields: Fields of the request.
        prompt: Its prompt.
        count: Most tokens of the answer; None for what the context holds.
        count_name: Field that has this number.
        streams: Whether pieces are sent as they come; None for what the fields say.

    Raises:
        ApiError: A field is wrong.
    """
    usual = Sampling()
    try:
        sampling = Sampling(
            fields.number("repeat_penalty", usual.repeat_penalty),
            usual.top_k if (top_k := fields.integer("top_k")) is None else top_k,
            fields.number("top_p", usual.top_p),
            fields.number("min_p", usual.min_p),
            fields.number("temperature", usual.temperature),
            fields.integer("seed"),
        )
        schema = _schema(fields.get("response_format"))
        wanted = Wanted(sampling, count, _stops(fields.get("stop")), schema)
    except InputError as error:
        said = str(error)
        name = count_name if "`max_tokens`" in said else said.split("`")[1]
        raise ApiError(400, said.replace("`max_tokens`", f"`{name}`"), param=name) from None
    options = fields.get("stream_options") or {}
    if not isinstance(options, dict) or options.keys() - {"include_usage", "include_obfuscation"}:
        raise wrong("stream_options", "an object with `include_usage`")
    return TextRequest(
        fields.text("model"),
        prompt,
        wanted,
        fields.flag("stream") if streams is None else streams,
        bool(options.get("include_usage")),
    )


def _stops(given: object) -> tuple[str, ...]:
    if given is None:
        return ()
    found = [given] if isinstance(given, str) else given
    if not isinstance(found, list) or not all(isinstance(each, str) and each for each in found):
        raise wrong("stop", "a text, or a list of texts")
    return tuple(found)


def _schema(given: object) -> str | None:
    """Return the text of the JSON schema that a response has to follow; None for any text.

    Raises:
        ApiError: The form is unknown.
    """
    kind = given.get("type") if isinstance(given, dict) else given
    if kind is None or kind == "text":
        return None
    if kind == "json_object":
        return ANY_OBJECT
    named = given.get("json_schema") if isinstance(given, dict) else None
    schema = named.get("schema") if isinstance(named, dict) else None
    if kind != "json_schema" or not isinstance(schema, dict):
        raise wrong(
            "response_format",
            "an object with the `type` `text`, `json_object`, or `json_schema` and "
            "`json_schema.schema`",
        )
    return json.dumps(schema)
