"""Sessions: tokens after tokens, forgotten, copied and stored, and what is refused."""

import os
import threading
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import numpy as np
import pytest

import tightship
from tests import decoders
from tests.engine.state.loops import GrowingCaches

SIZES = {"batch_size": 1, "sequence_length": 1, "past_sequence_length": 1}
near = partial(np.testing.assert_allclose, rtol=1e-4, atol=2e-5)
RANDOM = np.random.default_rng(8)


def tokens(count: int) -> list[int]:
    return [int(token) for token in RANDOM.integers(0, 50, count)]


@pytest.fixture(scope="module")
def model() -> Iterator[tightship.Model]:
    with tightship.load(decoders.llama(), shapes=SIZES) as loaded:
        yield loaded


def programs_of(session: tightship.Session) -> int:
    return session._programs.count


@pytest.mark.parametrize("make", [decoders.gpt2, decoders.genai, decoders.attention23])
def test_steps_are_those_of_growing_caches(make: Callable[[], bytes]) -> None:
    data = make()
    growing = GrowingCaches(data)
    sizes = SIZES | ({"total_sequence_length": 2} if make is decoders.genai else {})
    with tightship.load(data, shapes=sizes) as loaded:
        session = loaded.session(128, chunk=16)
        for count in (37, 1, 1, 5, *[1] * 30, 54):
            ids = tokens(count)
            near(session.step(ids), growing.step(ids)[:, -1:])
        assert session.length == 128


def test_logits_of_all_tokens(model: tightship.Model) -> None:
    growing, session = GrowingCaches(decoders.llama()), model.session(64, rows="all", chunk=8)
    for count in (21, 1, 3):
        ids = tokens(count)
        near(session.step(ids), growing.step(ids))


@pytest.mark.parametrize("make", [decoders.llama, decoders.gpt2, decoders.genai])
def test_a_thousand_tokens_make_a_program_for_each_power_of_two(
    make: Callable[[decoders.Size], bytes],
) -> None:
    chunk = 16
    shared = 4 if make is decoders.gpt2 else 2
    size = decoders.Size(layers=1, shared=shared, length=16, positions=1024)
    with tightship.load(make(size)) as loaded:
        session = loaded.session(1024, chunk=chunk)
        for count in range(1, chunk + 1):
            session.step(tokens(count))
            if session.length <= 2 * chunk:
                early = programs_of(session)
        while session.length < 1000:
            session.step(tokens(1 + session.length % 13))
        assert programs_of(session) <= chunk.bit_length()
        assert early >= 4
        made = programs_of(session)
        session.step(tokens(20))
        assert programs_of(session) == made


def test_truncated_tokens_leave_no_trace(model: tightship.Model) -> None:
    session, other = model.session(32), model.session(32)
    start, wrong, right = tokens(6), tokens(9), tokens(4)
    for each in (session, other):
        each.step(start)
    session.step(wrong)
    session.truncate(6)
    np.testing.assert_array_equal(session.step(right), other.step(right))
    for name, array in session._rows.arrays.items():
        np.testing.assert_array_equal(array, other._rows.arrays[name])
    session.reset()
    assert session.length == 0
    assert not any(array.any() for array in session._rows.arrays.values())
    with pytest.raises(tightship.InputError, match="has 0 tokens and cannot keep 1"):
        session.truncate(1)


def test_a_fork_goes_on_by_itself(model: tightship.Model) -> None:
    session = model.session(32)
    session.step(tokens(7))
    fork = session.fork()
    ids = tokens(3)
    first = session.step(ids)
    session.step(tokens(5))
    np.testing.assert_array_equal(fork.step(ids), first)
    assert (session.length, fork.length) == (15, 10)


def test_a_session_is_saved_and_restored(model: tightship.Model, tmp_path: Path) -> None:
    path, session = tmp_path / "text.session", model.session(32)
    session.step(tokens(9))
    session.save(path)
    ids = tokens(2)
    wanted = session.step(ids)
    other = model.session(64)
    other.step(tokens(3))
    other.restore(path)
    assert other.length == 9
    near(other.step(ids), wanted)
    with pytest.raises(tightship.InputError, match="9 tokens, more than the context of 8"):
        model.session(8).restore(path)
    with tightship.load(decoders.qwen2(), shapes=SIZES) as another:
        foreign = another.session(32)
        foreign.step(tokens(2))
        with pytest.raises(tightship.InputError, match="of another model"):
            foreign.restore(path)
        assert foreign.length == 2
    path.write_bytes(b"nothing of the kind")
    with pytest.raises(tightship.FormatError):
        session.restore(path)
    assert session.length == 11


def test_tokens_that_do_not_fit_change_nothing(model: tightship.Model) -> None:
    session, other = model.session(16), model.session(16)
    start = tokens(10)
    session.step(start)
    other.step(start)
    for given, match in (
        (tokens(7), "7 tokens after 10 are more than the session's context of 16"),
        ([1.5], "whole numbers"),
        ([3, -1], "at least 0"),
        ([], "at least one token"),
        ([[1], [2]], r"\[1, count\]"),
        ([50], "50"),
    ):
        with pytest.raises(tightship.InputError, match=match):
            session.step(given)
        assert session.length == 10
    ids = tokens(6)
    np.testing.assert_array_equal(session.step(ids), other.step(ids))


def test_a_stopped_step_changes_nothing(model: tightship.Model) -> None:
    session, flag = model.session(32), tightship.StopFlag()
    session.step(tokens(3))
    flag.set()
    with pytest.raises(tightship.StoppedError):
        session.step(tokens(4), stop=flag)
    with pytest.raises(tightship.DeadlineError):
        session.step(tokens(4), timeout_s=0)
    assert session.length == 3
    assert not any(session._rows.part(name, 3, 32).any() for name in session._rows.arrays)


def test_one_step_runs_at_a_time(model: tightship.Model) -> None:
    session = model.session(32)
    with session._used():
        found: list[BaseException] = []

        def step() -> None:
            try:
                session.step([1])
            except tightship.InputError as error:
                found.append(error)

        thread = threading.Thread(target=step)
        thread.start()
        thread.join()
    assert "Another thread" in str(found[0])
    session.step([1])


def test_a_forked_child_cannot_use_it(model: tightship.Model) -> None:
    session = model.session(32)
    child = os.fork()
    if child == 0:
        try:
            session.step([1])
        except tightship.InputError:
            os._exit(0)
        os._exit(1)
    assert os.waitpid(child, 0)[1] == 0


def test_two_texts_at_once() -> None:
    growing = GrowingCaches(decoders.llama(), 2)
    with tightship.load(decoders.llama(), shapes={**SIZES, "batch_size": 2}) as loaded:
        session = loaded.session(32, batch=2)
        for count in (5, 1):
            ids = tokens(count)
            near(session.step([ids, ids]), growing.step(ids)[:, -1:])


def test_what_cannot_have_a_session_is_refused(model: tightship.Model) -> None:
    from tests.small_models import dense

    with (
        tightship.load(dense(batch=4)[0]) as fixed,
        pytest.raises(tightship.InputError, match="fixed"),
    ):
        fixed.session(16)
    with (
        tightship.load(dense()[0], shapes={"batch": 1}) as other,
        pytest.raises(tightship.GraphError, match="no caches"),
    ):
        other.session(16)
    with pytest.raises(tightship.InputError, match="the least is 8"):
        model.session(4)
    with pytest.raises(tightship.InputError, match='"last" or "all"'):
        model.session(16, rows="some")


def limit_of(data: bytes, context: int, count: int, chunk: int = 16) -> int:
    """Bytes of the model, the programs of sessions and the caches of `count` of them."""
    with tightship.load(data, shapes=SIZES) as loaded:
        session = loaded.session(context, chunk=chunk)
        steps = session._programs.planned_bytes()
        return loaded.plan.peak_bytes + steps + count * session.state_bytes


def test_a_limit_counts_caches_programs_and_arenas() -> None:
    data = decoders.llama()
    limit = limit_of(data, 512, 3)
    with tightship.load(data, shapes=SIZES, max_memory=limit) as loaded:
        sessions = [loaded.session(512, chunk=16) for _ in range(3)]
        with pytest.raises(tightship.CapacityError, match=r"caches of 3 others .* at most 0 ") as e:
            loaded.session(512, chunk=16)
        assert e.value.needed_bytes == limit + sessions[0].state_bytes
        assert sessions[0].step(tokens(20)).shape == (1, 1, 50)
    with tightship.load(data, shapes=SIZES, max_memory=limit_of(data, 512, 1) - 1) as loaded:
        with pytest.raises(tightship.CapacityError, match="at most 511 "):
            loaded.session(512, chunk=16)
        assert loaded.session(256, chunk=16).context == 256


def test_forks_count_against_a_limit() -> None:
    data = decoders.llama()
    with tightship.load(data, shapes=SIZES, max_memory=limit_of(data, 64, 2)) as loaded:
        session = loaded.session(64, chunk=16)
        session.step(tokens(3))
        other = session.fork()
        with pytest.raises(tightship.CapacityError, match="caches of 2 others"):
            session.fork()
        assert (session.length, other.length) == (3, 3)
        del other
        assert session.fork().length == 3


def test_a_closed_model_runs_no_step() -> None:
    loaded = tightship.load(decoders.llama(), shapes=SIZES)
    session = loaded.session(16)
    session.step([1])
    loaded.close()
    with pytest.raises(tightship.InputError, match="closed"):
        session.step([1])
