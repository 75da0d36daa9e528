"""Texts as tokens, by the vocabulary in a GGUF file or by the `tokenizer.json` beside a model."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from tightship.brief import brief
from tightship.errors import FormatError
from tightship.text.text_extra import imported
from tightship.text.tokenizer import Tokenizer


@brief
@dataclass(frozen=True, slots=True)
class Encoded:
    """Tokens of a text, or of a pair of texts.

    Attributes:
        tokens: Numbers of the tokens.
        kinds: 0 for each token of the first text, 1 for each of the second.
    """

    tokens: list[int]
    kinds: list[int]

    def __len__(self) -> int:
        return len(self.tokens)


class TextEncoder(Protocol):
    """Encoder of texts and of pairs."""

    @property
    def size(self) -> int:
        """Tokens of the vocabulary."""

    def encode(self, text: str) -> Encoded:
        """Return the tokens of a text."""

    def encode_pair(self, first: str, second: str) -> Encoded:
        """Return the tokens of a pair of texts."""


class FileEncoder:
    """Encoder by the vocabulary of a GGUF file."""

    def __init__(self, tokenizer: Tokenizer) -> None:
        self._tokenizer = tokenizer

    @property
    def size(self) -> int:
        """Tokens of the vocabulary."""
        return self._tokenizer.size

    def encode(self, text: str) -> Encoded:
        """Return the tokens of a text."""
        tokens = self._tokenizer.encode(text)
        return Encoded(tokens, [0] * len(tokens))

    def encode_pair(self, first: str, second: str) -> Encoded:
        """Return the tokens of a pair of texts."""
        before = self._tokenizer.encode(first)
        behind = self._tokenizer.encode(second, begin=False)
        return Encoded(before + behind, [0] * len(before) + [1] * len(behind))


class JsonEncoder:
    """Encoder by a `tokenizer.json`, of the `tokenizers` library."""

    def __init__(self, path: Path) -> None:
        """Read a file.

        Raises:
            FormatError: The library cannot read it.
            InputError: The library is missing.
        """
        library: Any = imported("tokenizers")
        try:
            self._library = library.Tokenizer.from_file(str(path))
        except Exception as error:  # noqa: BLE001 - the library raises this class itself
            raise FormatError(
                f"`{path}` is not a tokenizer that can be read: {error}. Export it again."
            ) from None
        self._library.no_truncation()
        self._library.no_padding()

    @property
    def size(self) -> int:
        """Tokens of the vocabulary."""
        found: int = self._library.get_vocab_size()
        return found

    def encode(self, text: str) -> Encoded:
        """Return the tokens of a text."""
        return self._encoded(text)

    def encode_pair(self, first: str, second: str) -> Encoded:
        """Return the tokens of a pair of texts."""
        return self._encoded(first, second)

    def _encoded(self, *texts: str) -> Encoded:
        whole = [each.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
                 for each in texts]  # fmt: skip
        found = self._library.encode(*whole)
        return Encoded(found.ids, found.type_ids)
