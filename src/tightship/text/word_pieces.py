"""Tokens of WordPiece vocabularies: the longest token that begins a word, then what goes on."""

from typing import Any

from tightship.frontend.gguf.vocabulary import CONTROL, Vocabulary
from tightship.text.score_merges import SPACE
from tightship.text.text_extra import imported

LETTERS_MAX = 1 << 20
"""Letters of a word that is divided at all."""


class WordPieces:
    """Encoder of texts by word pieces, of the `tokenizers` library."""

    def __init__(self, vocabulary: Vocabulary) -> None:
        """Make the encoder.

        Raises:
            InputError: The `tokenizers` library is missing.
        """
        library: Any = imported("tokenizers")
        numbers = {
            _as_written(token, kind): number
            for number, (token, kind) in enumerate(
                zip(vocabulary.tokens, vocabulary.types, strict=True)
            )
        }
        unknown = vocabulary.tokens[vocabulary.special.get("unknown", 0)]
        lowercase = vocabulary.flags.get("normalizer.lowercase", True)
        model = library.models.WordPiece(
            vocab=numbers, unk_token=unknown, max_input_chars_per_word=LETTERS_MAX
        )
        self._library = library.Tokenizer(model)
        self._library.normalizer = library.normalizers.BertNormalizer(
            clean_text=True,
            handle_chinese_chars=True,
            strip_accents=vocabulary.flags.get("normalizer.strip_accents", lowercase),
            lowercase=lowercase,
        )
        self._library.pre_tokenizer = library.pre_tokenizers.BertPreTokenizer()

    def encode(self, text: str, *, is_first: bool) -> list[int]:  # noqa: ARG002  as others
        """Return the tokens of a text without special ones."""
        found: list[int] = self._library.encode(text, add_special_tokens=False).ids
        return found


def _as_written(token: str, kind: int) -> str:
    """Return a token as the library has it: a part that does not begin a word has two signs."""
    if token.startswith(SPACE):
        return token.removeprefix(SPACE)
    is_special = kind == CONTROL or (token.startswith("[") and token.endswith("]"))
    return token if is_special else f"##{token}"
