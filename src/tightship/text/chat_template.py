"""Chats as texts, by the template in a model's file, in jinja2's sandbox."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from functools import cached_property
from json import dumps
from typing import Any

from tightship.errors import InputError
from tightship.text.text_extra import imported

Message = Mapping[str, Any]
"""Message of a chat: `role`, `content`, and what else a template reads."""
ROLES = ("system", "developer", "user", "assistant", "tool")


class ChatTemplate:
    """Template of chats."""

    def __init__(self, path: str, source: str | None, named: Mapping[str, str]) -> None:
        """Take a template, which is parsed at its first use.

        Args:
            path: Name of the file in messages.
            source: Its template; None if it has none.
            named: Texts of the tokens `bos` and `eos`.
        """
        self._path, self._source = path, source
        self._named = {f"{role}_token": named.get(role, "") for role in ("bos", "eos")}

    @cached_property
    def _parsed(self) -> Any:  # noqa: ANN401  a class of jinja2
        if self._source is None:
            raise InputError(
                f"`{self._path}` has no template of chats (`tokenizer.chat_template`): it is a "
                "model that goes on with a text. Give a prompt instead of messages."
            )
        jinja2: Any = imported("jinja2")
        imported("jinja2.ext")
        environment = imported("jinja2.sandbox").ImmutableSandboxedEnvironment(
            trim_blocks=True, lstrip_blocks=True, extensions=["jinja2.ext.loopcontrols"]
        )
        environment.filters["tojson"] = _json
        environment.globals.update(raise_exception=_refuse, strftime_now=_now)
        try:
            return environment.from_string(self._source)
        except jinja2.TemplateError as error:
            raise self._refusal(error) from None

    def render(self, messages: Sequence[Message]) -> str:
        """Write a chat, up to the beginning of the model's answer.

        Raises:
            InputError: The file has no template, the template refuses the messages, or a message
                has no known role or no text.
        """
        check_messages(messages)
        template = self._parsed
        try:
            found: str = template.render(
                messages=[dict(each) for each in messages],
                add_generation_prompt=True,
                **self._named,
            )
        except Exception as error:  # noqa: BLE001 - the template is foreign code
            raise self._refusal(error) from None
        return found

    def _refusal(self, error: Exception) -> InputError:
        said = str(error) or type(error).__name__
        return InputError(
            f"The template of chats in `{self._path}` refuses the messages: {said}. Give messages "
            "in an order that it takes, or a prompt."
        )


def check_messages(messages: Sequence[Message]) -> None:
    """Check that messages have a role and a content.

    Raises:
        InputError: The list is empty, or a message has no known role or no text.
    """
    if not messages:
        raise InputError("The list of messages is empty; give at least one.")
    for place, message in enumerate(messages):
        given: object = message
        if not isinstance(given, Mapping) or given.get("role") not in ROLES:
            raise InputError(
                f"Message {place} has no role that is known; give a mapping with `role`, one of "
                f"{', '.join(ROLES)}, and `content`, a text."
            )
        if not isinstance(message.get("content"), str):
            raise InputError(f"The content of message {place} is not a text; give a text.")


def _json(value: Any, indent: int | None = None, **options: Any) -> str:  # noqa: ANN401
    """Write a value as JSON without signs of HTML, as templates expect."""
    return dumps(value, ensure_ascii=False, indent=indent, **options)


def _refuse(message: str) -> None:
    """Let a template refuse messages.

    Raises:
        InputError: Always.
    """
    raise InputError(message)


def _now(form: str) -> str:
    """Return the date of today in a form."""
    return datetime.now().astimezone().strftime(form)
