"""Answers, of a session whose next token is always the same sequence."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from tests.frontend.gguf.written import written
from tests.text.vocabularies import chat_fields
from tightship.errors import InputError, StoppedError
from tightship.frontend.gguf.vocabulary import open_vocabulary
from tightship.text import Generation, Sampling, Tokenizer
from tightship.text.generation import Wanted

VOCABULARY = open_vocabulary(written({"general.architecture": "llama", **chat_fields()}, {}))
TOKENIZER = Tokenizer(VOCABULARY)
GREEDY = Sampling(temperature=0)


class Scripted:
    """Session whose logits name the tokens of a script, one after the other."""

    def __init__(self, script: list[str], context: int = 64) -> None:
        self.script = [VOCABULARY.tokens.index(token) for token in script]
        self.context, self.read = context, list[int]()
        self.failures = 0

    @property
    def length(self) -> int:
        return len(self.read)

    def step_on(self, tokens: Sequence[int]) -> NDArray[Any]:
        if self.failures:
            self.failures -= 1
            raise StoppedError("stopped")
        self.read += tokens
        logits = np.zeros(TOKENIZER.size, np.float32)
        logits[self.script.pop(0)] = 9
        return logits


def answer(session: Scripted, **wanted: Any) -> Generation:
    return Generation(session, TOKENIZER, [1, 3], Wanted(GREEDY, **wanted))


def test_pieces_come_until_a_token_ends_the_answer() -> None:
    session = Scripted(["the", "<0xC3>", "<0xA9>", "\u2581in", "</s>", "a"])
    found = answer(session)
    assert list(found) == ["the", "é", " in"]
    assert (found.finish_reason, found.prompt_tokens, len(found.tokens)) == ("stop", 2, 4)
    assert session.read == [1, 3, *found.tokens]
    assert list(found.unread) == []
    assert list(found) == []


def test_answers_end_at_the_most_tokens_and_at_the_end_of_the_context() -> None:
    found = answer(Scripted(["a"] * 9), max_tokens=3)
    assert (found.text(), found.finish_reason) == ("aaa", "length")
    assert list(found.unread) == found.tokens[-1:]
    found = answer(Scripted(["a"] * 9, context=4))
    assert (found.text(), found.finish_reason) == ("aaa", "length")


def test_a_character_that_is_cut_at_the_end_is_replaced() -> None:
    assert answer(Scripted(["a", "<0xC3>"]), max_tokens=2).text() == "a\ufffd"


def test_a_stop_text_ends_an_answer() -> None:
    found = answer(Scripted(["a", "b", "the", "c"]), stop=("bt",))
    assert (found.text(), found.finish_reason) == ("a", "stop")


def test_a_step_that_was_stopped_can_be_taken_again() -> None:
    session = Scripted(["a", "b", "</s>"])
    found = answer(session)
    assert next(found) == "a"
    session.failures = 1
    with pytest.raises(StoppedError):
        next(found)
    assert found.text() == "b"


def test_a_long_prompt_runs_in_parts() -> None:
    session = Scripted(["a", "a", "the"], context=400)
    found = Generation(session, TOKENIZER, [3] * 300, Wanted(GREEDY, 1))
    assert [found.advance(), session.length, found.advance(), session.length] == ["", 128, "", 256]
    assert (found.advance(), session.length, found.finish_reason) == ("the", 300, "length")


def test_prompts_that_have_no_room_are_refused_with_both_numbers() -> None:
    with pytest.raises(InputError, match="The prompt has 2 tokens; the context holds 1"):
        answer(Scripted([], context=1))
    session = Scripted([], context=9)
    session.read = [1] * 8
    with pytest.raises(InputError, match="The prompt has 2 tokens after 8; the context holds 9"):
        answer(session)
    with pytest.raises(InputError, match="The prompt has no tokens"):
        Generation(session, TOKENIZER, [], Wanted())
    with pytest.raises(InputError, match="`max_tokens` is 0; it must be at least 1"):
        Wanted(max_tokens=0)
