"""Sessions that answers borrow."""

from collections.abc import Iterator
from pathlib import Path

import pytest

import tightship
from tests.text.vocabularies import chat_model
from tightship.driver.texts.session_slots import SessionSlots, sizes
from tightship.driver.texts.text_limits import TextLimits
from tightship.engine.state.cache_runs import PAGE
from tightship.errors import CapacityError, InputError
from tightship.model import Model
from tightship.text import Sampling
from tightship.text.generation import Wanted

WANTED = Wanted(Sampling(temperature=0), 2)


@pytest.fixture(scope="module")
def model() -> Iterator[Model]:
    with tightship.load(chat_model(context=256)) as loaded:
        yield loaded


def test_an_answer_gets_the_session_with_the_most_of_its_prompt(model: Model) -> None:
    slots = SessionSlots.of(model, TextLimits(context=16, sessions=2))
    texts = [[1, 20, 21, 22], [1, 30, 31, 32]]
    taken = [slots.take(text, 16) for text in texts]
    assert slots.take([1], 1) is None
    for slot, text in zip(taken, texts, strict=True):
        assert slot is not None
        assert slot.session.answer(text, WANTED).text() is not None
        slots.give_back(slot)
    assert slots.take([*texts[1], 40], 16) is taken[1]
    assert slots.take([*texts[1], 40], 16) is taken[0]
    slots.close()


def test_no_answer_waits_for_a_program_once_all_are_made(model: Model) -> None:
    slots = SessionSlots.of(model, TextLimits(context=64, sessions=4))
    slots.prepare()
    assert slots.joint is not None
    programs = slots.joint.programs
    assert programs.count == programs.chunk.bit_length()
    assert sorted(slots.joint._made) == [2, 4]
    slots.close()


def test_answers_reserve_what_they_may_reach_of_the_pool(model: Model) -> None:
    with model.session(256) as one:
        state = one.state_bytes
    slots = SessionSlots.of(model, TextLimits(context=256, sessions=3))
    assert (slots.pool.max_bytes, slots.context, slots.count) == (3 * state, 256, 3)
    assert slots.joint is not None
    assert (sizes(1), sizes(3), sizes(8)) == ([], [2], [8, 4, 2])
    slots._tokens = 256  # as if a limit had left memory for one context
    first = slots.take([1], 100)
    assert first is not None
    assert first.reserved == 128
    second = slots.take([1], 128)
    assert second is not None
    assert slots.take([1], 1) is None
    slots.give_back(first)
    assert slots.take([1], 1) is not None
    slots.close()


@pytest.mark.parametrize(("spill_bytes", "are_spilled"), [(None, False), (4096, False),
                                                         (1 << 20, True)])  # fmt: skip
def test_idle_sessions_spill_where_files_may_hold_them(
    model: Model, tmp_path: Path, spill_bytes: int | None, are_spilled: bool
) -> None:
    folder = None if spill_bytes is None else str(tmp_path)
    limits = TextLimits(256, 2, spill_bytes=spill_bytes, spill_folder=folder)
    slots = SessionSlots.of(model, limits)
    prompt = [1, *range(20, 40)] * 10
    slots.pool._pages.cap = 1 + slots._all[0].session.state_bytes // PAGE  # as by `max_memory`
    for slot in slots._all:
        slot.session.answer(prompt, WANTED).text()
    assert slots.pool.evictions == 1
    assert (slots.pool.spilled_bytes > 0) is are_spilled
    again = slots._all[0].session.answer([*prompt, 41], WANTED)
    assert again.text() is not None
    assert again.cached_tokens == len(prompt)
    slots.close()


def test_sessions_share_what_a_limit_leaves() -> None:
    with tightship.load(chat_model(context=256)) as free, free.session(256) as one:
        state, least = one.state_bytes, free.plan.peak_bytes
        programs = one._programs.planned_bytes()
    limit = least + programs + int(1.5 * state)
    with tightship.load(chat_model(context=256), max_memory=limit) as model:
        slots = SessionSlots.of(model, TextLimits(context=256, sessions=4))
        assert state <= slots.pool.max_bytes <= 1.5 * state
        assert slots.count == 4
        assert slots.take([1], 256) is not None
        assert slots.take([1], 256) is None
        slots.close()
    with (
        tightship.load(chat_model(context=256), max_memory=least + programs + state // 2) as model,
        pytest.raises(CapacityError, match="a context of at most"),
    ):
        SessionSlots.of(model, TextLimits(context=256, sessions=2))


def test_a_context_or_cache_that_cannot_be_is_refused(model: Model) -> None:
    with pytest.raises(InputError):
        SessionSlots.of(model, TextLimits(context=4))
    with pytest.raises(InputError, match="int4"):
        SessionSlots.of(model, TextLimits(context=64, cache="int4"))
