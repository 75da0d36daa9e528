"""Tokens that are found in texts as they are written."""

import pytest

from tests.text.vocabularies import vocabulary
from tightship.frontend.gguf.vocabulary import CONTROL, UNKNOWN, USER_DEFINED
from tightship.text.special_tokens import SpecialTokens

KNOWN = ["<unk>", "<s>", "<|im_end|>", "<x>", "<x><x>", "a", "</s>"]
TYPES = {"<unk>": UNKNOWN, "<s>": CONTROL, "<x>": USER_DEFINED, "<x><x>": USER_DEFINED}


def special(**known: object) -> SpecialTokens:
    return SpecialTokens(vocabulary("gpt2", KNOWN, TYPES, **known))


def test_a_text_is_divided_at_special_tokens_the_longest_first() -> None:
    found = special().divided("a<x><x><x>b<s>", with_control=True)
    assert list(found) == ["a", 4, 3, "b", 1]
    assert list(special().divided("", with_control=True)) == []


def test_control_tokens_can_be_read_as_text() -> None:
    found = special().divided("a<s><x><|im_end|>", with_control=False)
    assert list(found) == ["a<s>", 3, "<|im_end|>"]


def test_tokens_end_an_answer_by_their_role_or_their_text() -> None:
    assert special().ends == {2, 6}
    assert special(special={"eos": 5, "bos": 1}).ends == {2, 5, 6}
    assert {2, 6} <= special().control


@pytest.mark.parametrize(
    ("tokens", "ends"),
    [
        (("<|end|>", "<|return|>", "<|call|>"), {1, 2}),
        (("<|end|>", "<|return|>"), {0, 1}),
        (("</s>", "<|tool_response>"), {1}),
    ],
)
def test_some_models_use_such_tokens_otherwise(tokens: tuple[str, ...], ends: set[int]) -> None:
    assert SpecialTokens(vocabulary("gpt2", tokens)).ends == ends


def test_tokens_of_phi_3_take_in_spaces_behind_them() -> None:
    text = "<x> \n a<s> b"
    assert list(special(name="Phi-3 mini").divided(text, with_control=True)) == [3, "a", 1, " b"]
    assert list(special().divided(text, with_control=True)) == [3, " \n a", 1, " b"]
