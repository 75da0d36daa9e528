"""Small vocabularies of each kind, and a decoder with one."""

from collections.abc import Mapping, Sequence
from typing import Any

from tests.frontend.gguf.decoders import VOCABULARY, decoder
from tightship.frontend.gguf.vocabulary import (
    BYTE,
    CONTROL,
    NORMAL,
    UNKNOWN,
    USER_DEFINED,
    Vocabulary,
)

LETTERS = "abcdefghijklmnopqrstuvwxyz"
JOINED = ("\u2581a", "\u2581t", "th", "he", "the", "\u2581the", "in", "\u2581in")
BYTES = ("<0xC3>", "<0xA9>", "<0xF0>", "<0x9F>", "<0x98>", "<0x80>", "<0x0A>", "<0x21>")
TEMPLATE = (
    "{{ bos_token }}{% for message in messages %}<|{{ message.role[0] }}|>{{ message.content }}"
    "{% endfor %}{% if add_generation_prompt %}<|a|>{% endif %}"
)


def vocabulary(
    kind: str,
    tokens: Sequence[str],
    types: Mapping[str, int] | None = None,
    **known: Any,
) -> Vocabulary:
    """Return a vocabulary whose scores fall from its first token on."""
    kinds = [(types or {}).get(token, NORMAL) for token in tokens]
    scores = [-float(number) for number in range(len(tokens))]
    given = {
        "name": "", "pre": "", "merges": [], "special": {}, "flags": {}, "template": None,
        "longest_context": None, **known,
    }  # fmt: skip
    return Vocabulary(path="m.gguf", kind=kind, tokens=list(tokens), types=kinds, scores=scores,
                      **given)  # fmt: skip


def chat_tokens() -> tuple[list[str], list[int]]:
    """Return the tokens of a decoder of 70, of the kind `llama`, and their types."""
    tokens = ["<unk>", "<s>", "</s>", "<|u|>", "<|s|>", "<|a|>", *BYTES, *JOINED, "\u2581"]
    tokens += LETTERS
    types = {"<unk>": UNKNOWN, "<s>": CONTROL, "</s>": CONTROL, **dict.fromkeys(BYTES, BYTE)}
    types |= dict.fromkeys(("<|u|>", "<|s|>", "<|a|>"), USER_DEFINED)
    tokens += [f"word{number}" for number in range(VOCABULARY - len(tokens))]
    return tokens, [types.get(token, NORMAL) for token in tokens]


def chat_fields() -> dict[str, Any]:
    """Return the keys of a file with these tokens."""
    tokens, types = chat_tokens()
    return {
        "tokenizer.ggml.model": "llama",
        "tokenizer.ggml.tokens": tokens,
        "tokenizer.ggml.token_type": types,
        "tokenizer.ggml.scores": [-float(number) for number in range(len(tokens))],
        "tokenizer.ggml.bos_token_id": ("u32", 1),
        "tokenizer.ggml.eos_token_id": ("u32", 2),
        "tokenizer.chat_template": TEMPLATE,
    }


def chat_model(context: int = 64) -> bytes:
    """Return a decoder in GGUF that takes and writes texts, trained with so many tokens."""
    return decoder(layers=1, context_length=context).written(chat_fields())
