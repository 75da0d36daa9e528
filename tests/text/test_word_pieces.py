"""Tokens of WordPiece vocabularies."""

from tests.text.vocabularies import vocabulary
from tightship.frontend.gguf.vocabulary import CONTROL
from tightship.text.word_pieces import WordPieces

KNOWN = [
    "[UNK]",
    "[CLS]",
    "\u2581un",
    "\u2581play",
    "able",
    "play",
    "\u2581,",
    "\u2581cafe",
    "\u2581caf\xe9",
]
TYPES = dict.fromkeys(KNOWN[:2], CONTROL)


def tokens(text: str, **flags: bool) -> list[str]:
    named = {f"normalizer.{name}": value for name, value in flags.items()}
    made = vocabulary("bert", KNOWN, TYPES, special={"unknown": 0}, flags=named)
    return [KNOWN[number] for number in WordPieces(made).encode(text, is_first=True)]


def test_words_are_divided_into_their_longest_parts() -> None:
    assert tokens("Unplayable, play") == ["\u2581un", "play", "able", "\u2581,", "\u2581play"]
    assert tokens("unplayed") == ["[UNK]"]


def test_letters_become_small_and_lose_accents_unless_the_file_says_otherwise() -> None:
    assert tokens("CAFÉ") == ["\u2581cafe"]
    assert tokens("café", strip_accents=False) == ["\u2581caf\xe9"]
    assert tokens("Play café", lowercase=False) == ["[UNK]", "\u2581caf\xe9"]
