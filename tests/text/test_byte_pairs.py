"""Tokens of byte-pair vocabularies."""

import pytest

from tests.text.vocabularies import vocabulary
from tightship.errors import FormatError, GraphError
from tightship.text.byte_pairs import LETTERS, BytePairs, bytes_of

SINGLE = list(LETTERS)


def numbers(tokens: list[str], known: list[str]) -> list[int]:
    return [known.index(token) for token in tokens]


def test_pairs_are_joined_in_the_order_of_the_merges() -> None:
    known = [*SINGLE, "ab", "bc", "abc", "\u0120a"]
    made = vocabulary("gpt2", known, pre="gpt-2", merges=["b c", "a b", "a bc", "\u0120 a"])
    encoder = BytePairs(made)
    assert encoder.encode("abc ab", is_first=True) == numbers(["abc", "\u0120", "ab"], known)
    assert encoder.encode("", is_first=True) == []


def test_bytes_without_a_token_of_their_letter_are_tokens() -> None:
    known = list(SINGLE)
    encoder = BytePairs(vocabulary("gpt2", known, pre="gpt-2"))
    text = "é\u2028\U0001f600\0"
    found = encoder.encode(text, is_first=True)
    assert b"".join(bytes_of(known[number]) for number in found) == text.encode()


def test_a_part_that_is_a_token_becomes_it_where_the_rule_says_so() -> None:
    known = [*SINGLE, "abc"]
    for pre, count in (("llama-bpe", 1), ("qwen2", 3)):
        assert len(BytePairs(vocabulary("gpt2", known, pre=pre)).encode("abc", is_first=True)) == (
            count
        )


def test_merges_that_do_not_fit_are_refused() -> None:
    with pytest.raises(FormatError, match="merges of its vocabulary do not fit its tokens"):
        BytePairs(vocabulary("gpt2", SINGLE, pre="gpt-2", merges=["a b"]))
    with pytest.raises(GraphError, match="the rule `other`, which is not supported"):
        BytePairs(vocabulary("gpt2", SINGLE, pre="other"))


def test_letters_stand_for_all_bytes() -> None:
    assert sorted(LETTERS.values()) == list(range(256))
    assert (bytes_of("\u0120a\u010a"), bytes_of("é世")) == (b" a\n", "é世".encode())
