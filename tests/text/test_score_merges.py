"""Tokens of SentencePiece vocabularies."""

import pytest

from tests.text.vocabularies import vocabulary
from tightship.errors import FormatError
from tightship.frontend.gguf.vocabulary import BYTE, UNKNOWN
from tightship.text.score_merges import ScoreMerges

BYTES = [f"<0x{byte:02X}>" for byte in range(256)]
KNOWN = ["<unk>", *BYTES, "\u2581", "a", "b", "c", "ab", "bc", "abc", "\u2581a", "\u2581\u2581"]
TYPES = {"<unk>": UNKNOWN, **dict.fromkeys(BYTES, BYTE)}


def tokens(text: str, scores: dict[str, float], *, is_first: bool = False) -> list[str]:
    made = vocabulary("llama", KNOWN, TYPES)
    made = made._replace(scores=[scores.get(token, -100.0) for token in KNOWN])
    return [KNOWN[number] for number in ScoreMerges(made).encode(text, is_first=is_first)]


def test_the_neighbours_with_the_highest_score_are_joined_first() -> None:
    assert tokens("abc", {"bc": -1, "ab": -2}) == ["abc"]
    assert tokens("abcab", {"abc": -200, "bc": -1}) == ["abc", "ab"]
    assert tokens("bcb", {"bc": -1}) == ["bc", "b"]


def test_of_equal_scores_the_leftmost_is_joined() -> None:
    assert tokens("aab", {}) == ["a", "ab"]
    assert tokens("   ", {}) == ["\u2581\u2581", "\u2581"]


def test_letters_without_a_token_become_their_bytes() -> None:
    assert tokens("aé", {}) == ["a", "<0xC3>", "<0xA9>"]
    assert tokens("\U0001f600", {}) == ["<0xF0>", "<0x9F>", "<0x98>", "<0x80>"]


def test_a_space_is_put_before_the_first_word() -> None:
    assert tokens("ab", {"ab": -1}, is_first=True) == ["\u2581", "ab"]
    assert tokens("ab", {"\u2581a": -1}, is_first=True) == ["\u2581a", "b"]
    made = vocabulary("llama", KNOWN, TYPES, flags={"add_space_prefix": False})
    assert [KNOWN[n] for n in ScoreMerges(made).encode("ab", is_first=True)] == ["ab"]


def test_bytes_without_a_token_are_unknown() -> None:
    made = vocabulary("llama", ["<unk>", "a"], {"<unk>": UNKNOWN}, special={"unknown": 0})
    assert ScoreMerges(made).encode("aé", is_first=False) == [1, 0, 0]


def test_a_vocabulary_without_scores_is_refused() -> None:
    with pytest.raises(FormatError, match=r"`m.gguf` has no `tokenizer.ggml.scores`"):
        ScoreMerges(vocabulary("llama", KNOWN)._replace(scores=None))
