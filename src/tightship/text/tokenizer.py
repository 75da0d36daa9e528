"""Texts to numbers of tokens and back, by the vocabulary of a model's file."""

import os
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property, partial
from typing import Any, Protocol

from tightship.errors import GraphError
from tightship.frontend.gguf.vocabulary import (
    BYTE,
    NORMAL,
    UNUSED,
    USER_DEFINED,
    Vocabulary,
    open_vocabulary,
    warn_untrained,
)
from tightship.public_calls import public_methods
from tightship.text.byte_pairs import BytePairs, bytes_of
from tightship.text.chat_template import ChatTemplate
from tightship.text.pre_tokenizers import PRE_TOKENIZERS
from tightship.text.schema_guide import Followed, GuidedVocabulary, SchemaGuide
from tightship.text.score_merges import SPACE, ScoreMerges
from tightship.text.special_tokens import SpecialTokens
from tightship.text.word_pieces import WordPieces

LETTER_BYTES = 4
"""Most bytes of a letter in UTF-8."""


class Encoder(Protocol):
    """Encoder of texts without special tokens."""

    def encode(self, text: str, *, is_first: bool) -> list[int]:
        """Return the tokens; `is_first` if nothing or a special token is before the text."""


KINDS: Mapping[str, Callable[[Vocabulary], Encoder]] = {
    "gpt2": BytePairs,
    "llama": ScoreMerges,
    "bert": WordPieces,
}
"""Encoders by the kind of the vocabulary."""


@public_methods
class Tokenizer:
    """Tokens of a model's vocabulary. May be used from several threads."""

    def __init__(self, vocabulary: Vocabulary) -> None:
        """Make the tokenizer of a vocabulary.

        Raises:
            FormatError: The vocabulary does not fit itself.
            GraphError: Its kind or rule is not supported.
            InputError: A package of the extra `text` is missing.
        """
        kind = KINDS.get(vocabulary.kind)
        if kind is None:
            raise GraphError(
                f"`{vocabulary.path}` has a vocabulary of the kind `{vocabulary.kind}`, which is "
                f"not supported; supported are {', '.join(KINDS)}. Give numbers of tokens."
            )
        self._guiding = threading.Lock()
        self._vocabulary = vocabulary._replace(merges=[], scores=None)  # the encoder has these
        self._encoder = kind(vocabulary)
        self._special = SpecialTokens(vocabulary)
        self._longest = _longest_bytes(vocabulary.tokens)
        special, flags = vocabulary.special, vocabulary.flags
        first, last = _added(vocabulary)
        self._first = special.get("bos") if flags.get("add_bos_token", first) else None
        self._last = special.get("eos") if flags.get("add_eos_token", last) else None
        if vocabulary.kind == "bert":
            self._first, self._last = special.get("bos", 101), special.get("seperator", 102)

    @staticmethod
    def open(model: str | os.PathLike[str] | bytes) -> "Tokenizer":
        """Make the tokenizer of a GGUF file, or of its bytes.

        Raises:
            FormatError: The file is not GGUF, or has no vocabulary.
            GraphError: Kind or rule of the vocabulary are not supported.
            InputError: A package of the extra `text` is missing.
            OSError: The file cannot be opened.
        """
        return Tokenizer(open_vocabulary(model))

    @property
    def size(self) -> int:
        """Tokens of the vocabulary."""
        return len(self._vocabulary.tokens)

    @property
    def longest_context(self) -> int | None:
        """Most tokens that the model was trained with; None if its file does not say."""
        return self._vocabulary.longest_context

    def check_trained(self, context: int) -> None:
        """Warn if a context is longer than the texts that the model was trained with."""
        warn_untrained(context, self.longest_context)

    @property
    def longest_bytes(self) -> int:
        """Bytes of the longest token: a text of more for each token of a context cannot fit."""
        return self._longest

    @property
    def ends(self) -> frozenset[int]:
        """Numbers of the tokens that end an answer."""
        return self._special.ends

    def encode(
        self, text: str, *, special: bool = True, begin: bool = True, end: bool = True
    ) -> list[int]:
        """Return the numbers of a text's tokens.

        Args:
            text: The text; halves of surrogate pairs become U+FFFD.
            special: Whether control tokens, such as `<|im_end|>`, are found in the text, rather
                than read letter by letter.
            begin: Whether the token is added that the model expects at the beginning, if any.
            end: Whether the token is added that the model expects at the end, if any.
        """
        text = _valid(text)
        found = [self._first] if begin and self._first is not None else []
        is_first = True
        for part in self._special.divided(text, with_control=special):
            if isinstance(part, int):
                found.append(part)
                is_first = True
            else:
                found += self._encoder.encode(part, is_first=is_first)
                is_first = False
        if end and self._last is not None:
            found.append(self._last)
        return found

    def decode(self, tokens: Iterable[int], *, special: bool = False) -> str:
        """Return the text of tokens; bytes that are not UTF-8 become U+FFFD.

        Args:
            tokens: Numbers of tokens.
            special: Whether control tokens are written too.
        """
        parts = (self.piece(token, special=special) for token in tokens)
        return b"".join(parts).decode(errors="replace")

    def piece(self, token: int, *, special: bool = False) -> bytes:
        """Return the bytes that a token adds to a text; none for an unknown number.

        Args:
            token: Number of the token.
            special: Whether a control token is written.
        """
        tokens, types = self._vocabulary.tokens, self._vocabulary.types
        if not 0 <= token < len(tokens):
            return b""
        text, kind = tokens[token], types[token]
        if token in self._special.control:
            return text.encode() if special else b""
        if kind == BYTE and len(text) == len("<0x00>"):
            return bytes([int(text[3:5], 16)])
        if kind in (NORMAL, UNUSED) and self._vocabulary.kind == "gpt2":
            return bytes_of(text)
        return (text if kind == USER_DEFINED else text.replace(SPACE, " ")).encode()

    @cached_property
    def _guide(self) -> SchemaGuide:
        count = range(self.size)
        pieces = [self.piece(token, special=True) for token in count]
        special = sorted(self._special.control)
        encode = partial(self._encoder.encode, is_first=False)  # no space is put before it
        given = GuidedVocabulary(self._vocabulary.path, pieces, special, sorted(self.ends), encode)
        return SchemaGuide(given)

    def follow(self, schema: str) -> Followed:
        """Begin an answer that follows a JSON schema; the vocabulary is read at the first one.

        Args:
            schema: Text of the schema.

        Raises:
            InputError: The schema cannot be followed, or the vocabulary names no token that ends an
                answer; the package of the extra `schema` is missing.
        """
        with self._guiding:
            guide = self._guide
        return guide.follow(schema)

    @cached_property
    def _template(self) -> ChatTemplate:
        vocabulary = self._vocabulary
        named = {
            role: vocabulary.tokens[number]
            for role in ("bos", "eos")
            if (number := vocabulary.special.get(role)) is not None
        }
        return ChatTemplate(vocabulary.path, vocabulary.template, named)

    @property
    def has_template(self) -> bool:
        """Whether the file has a template of chats."""
        return self._vocabulary.template is not None

    def chat(self, messages: Iterable[Mapping[str, Any]]) -> str:
        """Write a chat as the model reads it, up to the beginning of its answer.

        Args:
            messages: Messages with `role` and `content`, such as
                `{"role": "user", "content": "Hello"}`.

        Raises:
            InputError: The file has no template, or the template refuses the messages; a package
                of the extra `text` is missing.
        """
        return self._template.render(list(messages))

    def encode_chat(self, text: str) -> list[int]:
        """Return the tokens of a chat as `chat` writes it.

        The token that the model expects at the beginning is added unless the template wrote it.
        """
        first = self._first
        begins = first is not None and text.startswith(self._vocabulary.tokens[first])
        found = self.encode(text, begin=False, end=False)
        return found if begins or first is None else [first, *found]

    def __repr__(self) -> str:
        return f"<tightship.text.Tokenizer {self._vocabulary.path}: {self.size} tokens>"


def _longest_bytes(texts: Sequence[str]) -> int:
    """Return the bytes of the longest text, one of those with many letters."""
    least = max(map(len, texts)) // LETTER_BYTES
    return max(len(text.encode()) for text in texts if len(text) >= least)


def _added(vocabulary: Vocabulary) -> tuple[bool, bool]:
    """Whether tokens for the beginning and the end are added if the file does not say."""
    if vocabulary.kind == "gpt2":
        rule = PRE_TOKENIZERS.get(vocabulary.pre)
        return rule is not None and rule.adds_begin, False
    return True, False


def _valid(text: str) -> str:
    """Return a text with surrogate pairs joined, and halves of them replaced."""
    if text.isascii():
        return text
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text
