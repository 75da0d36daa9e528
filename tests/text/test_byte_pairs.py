"""Tokens of byte-pair vocabularies."""

import numpy as np
import pytest

from tests.text.vocabularies import vocabulary
from tightship import _core
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


def test_words_have_the_tokens_of_the_library_that_others_use() -> None:
    library = pytest.importorskip("tokenizers")
    random = np.random.default_rng(3)
    letters, known, merges = "abcdé", list("abcdé"), list[str]()
    while len(merges) < 200:
        left, right = (known[random.integers(len(known))] for _ in range(2))
        if f"{left} {right}" not in merges and len(left + right) < 12:
            merges.append(f"{left} {right}")
            known += [left + right] if left + right not in known else []
    numbers = {token: number for number, token in enumerate(known)}
    pairs = [(left, right) for left, right in map(str.split, merges)]
    words = ["".join(random.choice([*letters, "x"], size)) for size in random.integers(0, 60, 400)]
    words += ["ab" * 5000, "", "é" * 999]
    for ignores_merges in (False, True):
        oracle = library.models.BPE(vocab=numbers, merges=pairs, ignore_merges=ignores_merges)
        encoder = _core.BytePairs(known, merges, ignores_merges)
        for word in words:
            wanted = [each.id for each in oracle.tokenize(word)] if word else []
            assert encoder.encode([word]) == wanted
        apart = [number for word in words[:9] for number in encoder.encode([word])]
        assert encoder.encode(words[:9]) == apart
    with pytest.raises(ValueError, match="`ab` is not a pair"):
        _core.BytePairs(known, ["ab"], ignores_merges=False)
