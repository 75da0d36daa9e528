"""Templates of chats."""

import json

import pytest

from tightship.errors import InputError
from tightship.text.chat_template import ChatTemplate

HELLO = [{"role": "user", "content": "Grüße"}]


def rendered(source: str | None, messages: object = HELLO) -> str:
    template = ChatTemplate("m.gguf", source, {"bos": "<s>"})
    return template.render(messages)  # type: ignore[arg-type]


def test_a_template_writes_messages_and_names_of_tokens() -> None:
    source = (
        "{{ bos_token }}{{ eos_token }}{% for m in messages %}\n"
        "    {% if loop.last %}{{ m.role }}: {{ m['content'] | trim }}{% break %}{% endif %}\n"
        "{% endfor %}{% if add_generation_prompt %}>{% endif %}{{ tools is defined }}"
    )
    assert rendered(source) == "<s>user: Grüße>False"
    assert json.loads(rendered("{{ messages | tojson }}")) == HELLO
    assert "ü" in rendered("{{ messages | tojson }}")
    assert len(rendered("{{ strftime_now('%Y') }}")) == 4


@pytest.mark.parametrize(
    "source",
    [
        "{{ ''.__class__.__mro__ }}",
        "{{ messages.append(1) }}",
        "{% for a in range(999999999) %}{% endfor %}",
        "{{ cycler.__init__.__globals__ }}",
        "{{ raise_exception('roles must alternate') }}",
        "{% if %}",
        "{{ 1 / 0 }}",
    ],
)
def test_a_template_that_does_what_it_must_not_is_refused(source: str) -> None:
    with pytest.raises(InputError, match=r"The template of chats in `m.gguf` refuses"):
        rendered(source)


@pytest.mark.parametrize(
    ("messages", "message"),
    [
        ([], "The list of messages is empty"),
        ([{"role": "user", "content": "a"}, {"content": "b"}], "Message 1 has no role"),
        ([{"role": "robot", "content": "a"}], "Message 0 has no role that is known"),
        ([{"role": "user", "content": 7}], "The content of message 0 is not a text"),
        (["hello"], "Message 0 has no role"),
    ],
)
def test_messages_that_are_none_are_refused(messages: object, message: str) -> None:
    with pytest.raises(InputError, match=message):
        rendered("{{ messages }}", messages)


def test_a_file_without_a_template_is_told() -> None:
    with pytest.raises(InputError, match=r"has no template of chats \(`tokenizer.chat_template`\)"):
        rendered(None)
