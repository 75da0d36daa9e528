"""Tokens of byte-pair vocabularies: bytes are joined in the order of a list of merges."""

from typing import Any

from tightship import _core
from tightship.errors import FormatError
from tightship.frontend.gguf.vocabulary import Vocabulary
from tightship.text.pre_tokenizers import pre_tokenizer
from tightship.text.text_extra import imported


class BytePairs:
    """Encoder of texts by byte pairs; the `tokenizers` library divides texts into words."""

    def __init__(self, vocabulary: Vocabulary) -> None:
        """Make the encoder.

        Raises:
            FormatError: A merge has no token, or is not a pair.
            GraphError: The rule that divides texts is not supported.
            InputError: The `tokenizers` library is missing.
        """
        rule = pre_tokenizer(vocabulary.pre, vocabulary.path)
        library: Any = imported("tokenizers")
        try:
            self._pairs = _core.BytePairs(vocabulary.tokens, vocabulary.merges, rule.ignores_merges)
        except ValueError as error:
            raise FormatError(
                f"`{vocabulary.path}`: the merges of its vocabulary do not fit its tokens: "
                f"{error}. Convert the model again."
            ) from None
        parts = library.pre_tokenizers
        divided = [
            parts.Split(library.Regex(pattern), "isolated", invert=False)
            for pattern in rule.patterns
        ]
        as_letters = parts.ByteLevel(add_prefix_space=False, trim_offsets=False, use_regex=False)
        self._words = parts.Sequence([*divided, as_letters])

    def encode(self, text: str, *, is_first: bool) -> list[int]:  # noqa: ARG002  as others
        """Return the tokens of a text without special ones."""
        words = [word for word, _ in self._words.pre_tokenize_str(text)]
        return self._pairs.encode(words)


def _letters() -> dict[str, int]:
    """Return the bytes that the letters of such vocabularies stand for.

    Printable characters of Latin-1 stand for themselves, the other bytes for letters from U+0100.
    """
    shown = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    hidden = [byte for byte in range(0x100) if byte not in shown]
    return {chr(byte): byte for byte in shown} | {
        chr(0x100 + place): byte for place, byte in enumerate(hidden)
    }


LETTERS = _letters()
"""Bytes by the letters that stand for them."""


def bytes_of(token: str) -> bytes:
    """Return the bytes that a token stands for; other letters stand for themselves."""
    try:
        return bytes([LETTERS[letter] for letter in token])
    except KeyError:
        return token.encode()
