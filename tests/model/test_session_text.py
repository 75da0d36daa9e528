"""Sessions that go on with texts."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import tightship
from tests import decoders
from tests.text.vocabularies import chat_model
from tightship.errors import InputError, StoppedError
from tightship.model import Model

HELLO = {"role": "user", "content": "the"}


@pytest.fixture(scope="module")
def model() -> Iterator[Model]:
    with tightship.load(chat_model()) as loaded:
        yield loaded


def greedy(model: Model, tokens: list[int], count: int) -> list[int]:
    """Return the likeliest tokens, one at a time, by `step` alone."""
    session, found = model.session(64), list[int]()
    logits = session.step(tokens)
    for _ in range(count):
        found.append(int(np.argmax(logits[0, -1])))
        logits = session.step(found[-1:])
    return found


def test_a_text_goes_on_with_the_likeliest_tokens(model: Model) -> None:
    prompt = model.tokenizer.encode("the in", end=False)
    wanted = greedy(model, prompt, 8)
    answer = model.session(64).generate("the in", temperature=0, max_tokens=8)
    pieces = list(answer)
    assert all(pieces)
    assert answer.tokens == wanted[: len(answer.tokens)]
    assert "".join(pieces) == model.tokenizer.decode(answer.tokens)
    assert answer.prompt_tokens == len(prompt)


def test_a_further_prompt_goes_on_behind_the_answer(model: Model) -> None:
    session = model.session(64)
    first = session.generate([1, 5, 9], temperature=0, max_tokens=4)
    assert first.text() is not None
    second = session.generate([7], temperature=0, max_tokens=4)
    assert second.text() is not None
    assert second.tokens == greedy(model, [1, 5, 9, *first.tokens, 7], 4)[: len(second.tokens)]


def test_a_seed_repeats_an_answer(model: Model) -> None:
    def said(seed: int) -> list[int]:
        answer = model.session(64).generate("a", temperature=2.0, seed=seed, max_tokens=12)
        assert answer.text() is not None
        return answer.tokens

    assert said(3) == said(3) != said(4)


def test_a_chat_computes_what_is_new_of_it(model: Model) -> None:
    session = model.session(64)
    first = session.generate([HELLO], temperature=0, max_tokens=3)
    said = first.text()
    chat = [HELLO, {"role": "assistant", "content": "b"}, HELLO]
    second = session.generate(chat, temperature=0, max_tokens=3)
    assert second.cached_tokens == len(model.tokenizer.encode_chat("<s><|u|>the<|a|>"))
    fresh = model.session(64).generate(chat, temperature=0, max_tokens=3)
    assert (second.text(), second.prompt_tokens) == (fresh.text(), fresh.prompt_tokens)
    again = session.generate([HELLO], temperature=0, max_tokens=3)
    assert (again.text(), again.cached_tokens) == (said, again.prompt_tokens - 1)


def test_tokens_that_other_calls_change_are_not_taken_for_a_chats(model: Model) -> None:
    session = model.session(64)
    wanted = session.generate([HELLO], temperature=0, max_tokens=3).text()
    length = session.length
    session.truncate(length - 2)
    session.step([40, 41])  # as many tokens as before, but others
    again = session.generate([HELLO], temperature=0, max_tokens=3)
    assert (again.cached_tokens, again.text()) == (0, wanted)


def test_an_answer_is_ended_by_a_flag(model: Model) -> None:
    flag = tightship.StopFlag()
    answer = model.session(64).generate("a", temperature=0, flag=flag)
    next(answer)
    flag.set()
    with pytest.raises(StoppedError):
        answer.text()


def test_a_prompt_beyond_the_context_is_refused(model: Model) -> None:
    with pytest.raises(InputError, match="The prompt has 71 tokens; the context holds 64"):
        model.session(64).generate("in" * 70)


def test_models_without_a_vocabulary_take_numbers() -> None:
    with tightship.load(decoders.llama()) as loaded:
        session = loaded.session(16)
        with pytest.raises(InputError, match="has no vocabulary; only GGUF files have"):
            session.generate("a")
        with pytest.raises(InputError, match="has no vocabulary"):
            _ = loaded.tokenizer


@pytest.mark.parametrize("given", [{"max_tokens": 0}, {"top_p": 2.0}, {"stop": [""]}])
def test_options_that_do_not_fit_are_refused(model: Model, given: dict[str, Any]) -> None:
    with pytest.raises(InputError):
        model.session(64).generate("a", **given)


def test_a_shared_model_has_its_vocabulary_too(
    tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TIGHTSHIP_CACHE_DIR", str(tmp_path / "prepared"))
    path = tmp_path / "m.gguf"
    path.write_bytes(chat_model())
    with tightship.load(path, share=True) as shared:
        assert shared.session(64).generate("a", temperature=0, max_tokens=2).text()
