"""Texts to tokens and back."""

import pytest

from tests.frontend.gguf.written import written
from tests.text.vocabularies import BYTES, chat_fields, vocabulary
from tightship.errors import GraphError, InputError
from tightship.frontend.gguf.vocabulary import CONTROL, open_vocabulary
from tightship.text import Tokenizer
from tightship.text.byte_pairs import LETTERS

CHAT = open_vocabulary(written({"general.architecture": "llama", **chat_fields()}, {}))


def chat(**known: object) -> Tokenizer:
    return Tokenizer(CHAT._replace(**known))  # type: ignore[arg-type]


def texts(tokens: list[int]) -> list[str]:
    return [CHAT.tokens[token] for token in tokens]


def test_texts_have_the_tokens_that_the_model_expects_around_them() -> None:
    found = chat().encode("the é")
    assert texts(found) == ["<s>", "\u2581the", "\u2581", "<0xC3>", "<0xA9>"]
    assert texts(chat().encode("the", begin=False)) == ["\u2581the"]
    assert texts(chat(flags={"add_bos_token": False}).encode("a")) == ["\u2581a"]
    ended = chat(flags={"add_eos_token": True})
    assert texts(ended.encode("a")) == ["<s>", "\u2581a", "</s>"]
    assert texts(ended.encode("a", end=False)) == ["<s>", "\u2581a"]


def test_special_tokens_are_found_or_read_letter_by_letter() -> None:
    assert texts(chat().encode("<|u|>a</s>the", begin=False)) == [
        "<|u|>", "\u2581a", "</s>", "\u2581the"
    ]  # fmt: skip
    assert "</s>" not in texts(chat().encode("a</s>", special=False))


def test_tokens_become_texts() -> None:
    tokenizer = chat()
    found = tokenizer.encode("the é\U0001f600 in")
    assert tokenizer.decode(found) == " the é\U0001f600 in"
    assert tokenizer.decode(found, special=True).startswith("<s> the")
    assert tokenizer.piece(CHAT.tokens.index(BYTES[0])) == b"\xc3"
    assert tokenizer.decode([CHAT.tokens.index(BYTES[0])]) == "\ufffd"
    assert (tokenizer.piece(-1), tokenizer.piece(70)) == (b"", b"")
    assert (tokenizer.size, tokenizer.ends, tokenizer.longest_bytes) == (70, {2}, 6)


def test_byte_pairs_become_texts() -> None:
    known = [*LETTERS, "<|end|>"]
    tokenizer = Tokenizer(vocabulary("gpt2", known, {"<|end|>": CONTROL}, pre="gpt-2"))
    text = "Grüße, 世界 \U0001f600\n\0"
    assert tokenizer.decode(tokenizer.encode(f"{text}<|end|>")) == text
    assert tokenizer.ends == {256}


def test_halves_of_surrogate_pairs_are_replaced() -> None:
    known = Tokenizer(vocabulary("gpt2", [*LETTERS], pre="gpt-2"))
    assert known.decode(known.encode("a\ud83d\ude00\ud83d")) == "a\U0001f600\ufffd"


def test_a_chat_begins_with_the_token_for_it_once() -> None:
    messages = [{"role": "user", "content": "the"}]
    wanted = ["<s>", "<|u|>", "\u2581the", "<|a|>"]
    assert chat().chat(messages) == "<s><|u|>the<|a|>"
    assert texts(chat().encode_chat(chat().chat(messages))) == wanted
    without = CHAT.template.replace("{{ bos_token }}", "")  # type: ignore[union-attr]
    assert texts(chat().encode_chat(chat(template=without).chat(messages))) == wanted
    with pytest.raises(InputError, match="no template"):
        chat(template=None).chat(messages)


def test_an_unknown_kind_is_refused_with_those_that_are_known() -> None:
    with pytest.raises(GraphError, match=r"the kind `t5`, .* supported are gpt2, llama, bert"):
        chat(kind="t5")


def test_a_rule_adds_a_beginning_unless_the_file_says_otherwise() -> None:
    known = [*LETTERS]
    for pre, flags, count in (
        ("llama-bpe", {}, 2), ("qwen2", {}, 1), ("llama-bpe", {"add_bos_token": False}, 1),
    ):  # fmt: skip
        made = vocabulary("gpt2", known, pre=pre, special={"bos": 0}, flags=flags)
        assert len(Tokenizer(made).encode("a")) == count
