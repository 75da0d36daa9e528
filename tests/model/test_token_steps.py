"""A token more than a session has takes one native call, with the results of any other step."""

import threading
from collections.abc import Iterator
from typing import Any
from unittest import mock

import numpy as np
import pytest

import tightship
from tests import decoders
from tightship._core import ArenaClaim, StopFlag, TokenSteps
from tightship.errors import InputError, OutOfMemoryError, StoppedError
from tightship.model import step_programs

SIZES = {"batch_size": 1, "sequence_length": 1, "past_sequence_length": 1}
CONTEXT = 128
TOKENS = [int(each) for each in np.random.default_rng(0).integers(0, 50, CONTEXT)]
Model = Any


@pytest.fixture(scope="module")
def model() -> Iterator[Model]:
    with tightship.load(decoders.llama(), shapes=SIZES) as loaded:
        yield loaded


def opened(model: Model, count: int = 5, **options: Any) -> tightship.Session:
    """Return a session that has begun to take tokens one by one."""
    session = model.session(CONTEXT, **options)
    session.step(TOKENS[: count - 1])
    session.step(TOKENS[count - 1 : count])
    return session


def slowly(session: tightship.Session, token: int) -> Any:
    """Step without the call of the core."""
    with mock.patch.object(session._programs, "token_steps", None):
        return session.step([token])


@pytest.mark.parametrize(
    "options",
    [{}, {"cache": "int8"}, {"cache": "float16"}, {"share_prefix": True}, {"rows": "all"}],
)
def test_logits_are_those_of_any_other_step(model: Model, options: Any) -> None:
    quick, slow = opened(model, **options), opened(model, **options)
    with mock.patch.object(step_programs, "execute", wraps=step_programs.execute) as executed:
        for token in TOKENS[5:]:
            np.testing.assert_array_equal(quick.step([token]), slowly(slow, token))
        slow_steps = len(TOKENS[5:])
        assert slow_steps <= executed.call_count <= slow_steps + 12  # some rows begin a page
    assert quick.length == slow.length == CONTEXT
    with pytest.raises(InputError, match="more than the session's context"):
        quick.step([1])
    for name, rows in quick._rows.arrays.items():
        np.testing.assert_array_equal(rows, slow._rows.arrays[name])


@pytest.mark.parametrize("dtype", [np.int64, np.int32, np.longlong, np.int8, np.uint64])
def test_an_array_of_one_is_a_token(model: Model, dtype: Any) -> None:
    session, wanted = opened(model), opened(model)
    forms = (np.array([7], dtype), np.array([[7]], dtype), np.array([9, 7, 9], dtype)[1:2])
    with mock.patch.object(step_programs, "execute", wraps=step_programs.execute) as executed:
        found = [session.step(given) for given in forms]
    assert executed.call_count == (0 if np.dtype(dtype).kind == "i" and dtype != np.int8 else 3)
    np.testing.assert_array_equal(found, [slowly(wanted, 7) for _ in forms])
    for wrong in (np.array(7), np.array([[[7]]]), np.array([7.0]), np.array([-7]), b"a", "a", []):
        with pytest.raises(InputError):
            session.step(wrong)  # type: ignore[arg-type]
    assert session.length == wanted.length


@pytest.mark.parametrize("token", [50, 1 << 40, -1, True, 1.5])
def test_a_wrong_token_leaves_the_session_as_it_was(model: Model, token: Any) -> None:
    for count in range(5, 40):  # rows begin pages anywhere
        session = opened(model, count)
        with pytest.raises(InputError):
            session.step([token])
        assert session.length == count
        for name in session._rows.arrays:
            assert not session._rows.part(name, count, session._rows.ready).any()
    wanted = opened(model, count)
    np.testing.assert_array_equal(session.step([3]), wanted.step([3]))
    np.testing.assert_array_equal(session.step([3]), wanted.step([3]))


def test_a_set_flag_ends_the_step_and_a_clear_one_does_not(model: Model) -> None:
    session, wanted, stop = opened(model), opened(model), StopFlag()
    np.testing.assert_array_equal(session.step([3], stop=stop), wanted.step([3]))
    stop.set()
    with pytest.raises(StoppedError):
        session.step([4], stop=stop)
    assert session.length == wanted.length
    np.testing.assert_array_equal(session.step([4]), wanted.step([4]))
    with pytest.raises(InputError, match="stop"):
        session.step([5], stop=1)  # type: ignore[arg-type]
    np.testing.assert_array_equal(session.step([5]), wanted.step([5]))


def test_memory_for_the_logits_that_is_refused_changes_nothing(model: Model) -> None:
    session, wanted = opened(model), opened(model)
    programs = session._programs
    usual, places = programs.token_steps, programs._places_of(1)
    count = places.executable.native.step_count
    programs.token_steps = TokenSteps(count, places.logits, mock.Mock(side_effect=MemoryError))
    try:
        for room in programs._arenas.pool._free:
            arena = room.arena(places.executable)
            programs.token_steps.add(arena.context, room.range, room.claim, 0)
        with pytest.raises(OutOfMemoryError, match="a step of a session"):
            session.step([3])
    finally:
        programs.token_steps = usual
    np.testing.assert_array_equal(session.step([3]), wanted.step([3]))


def test_a_session_in_use_refuses_a_token(model: Model) -> None:
    session = opened(model)
    with session._used(), pytest.raises(InputError, match="Another thread uses the session"):
        session.step([1])
    assert session.length == 5
    session.close()
    with pytest.raises(InputError, match="was closed"):
        session.step([1])


def test_other_calls_between_tokens_are_seen(model: Model, tmp_path: Any) -> None:
    session, wanted = opened(model), opened(model)
    for token in (3, 4, 5):
        session.step([token])
    session.save(tmp_path / "rows")
    other = session.fork()
    session.truncate(6)
    assert slowly(wanted, 3) is not None
    np.testing.assert_array_equal(session.step([9]), slowly(wanted, 9))
    np.testing.assert_array_equal(session.step([8]), slowly(wanted, 8))
    session.restore(tmp_path / "rows")
    np.testing.assert_array_equal(session.step([7]), other.step([7]))
    np.testing.assert_array_equal(session.step([6]), other.step([6]))
    assert session.length == other.length == 10


def test_an_evicted_session_has_its_tokens_again(model: Model) -> None:
    pool = tightship.SessionPool("1MiB", at_cap="evict")
    session, wanted = opened(model, pool=pool), opened(model)
    for token in TOKENS[5:30]:
        session.step([token])
        wanted.step([token])
    assert session._idle.evict()
    assert pool.used_bytes == 0
    np.testing.assert_allclose(session.step([3]), wanted.step([3]), rtol=1e-5, atol=1e-6)
    assert session.length == wanted.length
    assert session._kept.all().tolist() == [[*TOKENS[:30], 3]]


def test_sessions_take_turns_and_run_at_once(model: Model) -> None:
    sessions, wanted = [opened(model) for _ in range(4)], opened(model)
    rows = [slowly(wanted, token) for token in TOKENS[5:60]]
    found: dict[int, list[Any]] = {index: [] for index in range(4)}

    def go_on(index: int, tokens: list[int]) -> None:
        for token in tokens:
            found[index].append(sessions[index].step([token]))

    for token in TOKENS[5:20]:
        for index in range(4):
            go_on(index, [token])
    threads = [threading.Thread(target=go_on, args=(i, TOKENS[20:60])) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for each in found.values():
        np.testing.assert_array_equal(each, rows)


def test_memory_that_was_given_back_is_not_run_in() -> None:
    with tightship.load(decoders.llama(), shapes=SIZES) as model:
        session, wanted = opened(model), opened(model)
        steps, pool = session._programs.token_steps, session._programs._arenas.pool
        for _ in range(3):
            pool.release_unused()
            assert pool.held_bytes == 0
            np.testing.assert_array_equal(session.step([3]), slowly(wanted, 3))
        for _ in range(3):  # a room that is gone is forgotten once another one comes
            for room in list(pool._free):
                assert room.claim.take()
                pool._drop(room)
            np.testing.assert_array_equal(session.step([3]), slowly(wanted, 3))
            assert steps.arena_count == 1
    with pytest.raises(InputError, match="was closed"):
        session.step([1])


def test_a_claimed_arena_is_left_alone() -> None:
    with tightship.load(decoders.llama(), shapes=SIZES) as model:
        session, wanted = opened(model), opened(model)
        pool = session._programs._arenas.pool
        (room,) = pool._free
        held, used = pool.held_bytes, pool.used_bytes
        assert room.claim.take()
        assert pool.used_bytes == used + room.size_bytes
        pool.release_unused()
        pool.resize(0, None)
        assert pool.held_bytes == held
        np.testing.assert_array_equal(session.step([3]), slowly(wanted, 3))
        assert len(pool._free) == 2
        waiting = threading.Thread(target=pool.close)
        waiting.start()
        waiting.join(0.05)
        assert waiting.is_alive()
        room.claim.give()
        waiting.join()
        assert not pool._free


def test_a_claim_has_one_taker() -> None:
    claim = ArenaClaim()
    assert claim.take()
    assert not claim.take()
    assert claim.is_taken
    claim.give()
    assert not claim.is_taken
    assert claim.used_ns == claim.used_bytes == 0
