"""Sessions that take the memory of their caches from a pool."""

import gc
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import numpy as np
import pytest

import tightship
from tests import decoders
from tests.engine.state.loops import GrowingCaches
from tests.process_memory import data_bytes, written_pss_bytes
from tightship.engine.library import release_heap

SIZES = {"batch_size": 1, "sequence_length": 1, "past_sequence_length": 1}
WIDE = decoders.Size(layers=3, heads=4, shared=2, length=64, positions=4096)
near = partial(np.testing.assert_allclose, rtol=1e-4, atol=2e-5)
RANDOM = np.random.default_rng(9)


def tokens(count: int) -> list[int]:
    return [int(token) for token in RANDOM.integers(0, 50, count)]


@pytest.fixture(scope="module")
def model() -> Iterator[tightship.Model]:
    with tightship.load(decoders.llama(WIDE), shapes=SIZES) as loaded:
        yield loaded


@pytest.mark.parametrize(
    "make",
    [
        decoders.gpt2,
        decoders.genai,
        pytest.param(decoders.llama, marks=pytest.mark.slow),
        pytest.param(decoders.attention23, marks=pytest.mark.slow),
    ],
)
def test_steps_are_those_of_a_session_without_a_pool(make: Callable[[], bytes]) -> None:
    data, pool = make(), tightship.SessionPool("1MiB")
    growing = GrowingCaches(data)
    sizes = SIZES | ({"total_sequence_length": 2} if make is decoders.genai else {})
    with tightship.load(data, shapes=sizes) as loaded:
        plain, session = loaded.session(100, chunk=16), loaded.session(100, chunk=16, pool=pool)
        assert pool.used_bytes == 0
        for count in (37, 1, 1, 5, *[1] * 20):
            ids = tokens(count)
            found = session.step(ids)
            np.testing.assert_array_equal(found, plain.step(ids))
            near(found, growing.step(ids)[:, -1:])
        fork = session.fork()
        ids = tokens(9)
        wanted = plain.step(ids)
        session.step(tokens(3))
        np.testing.assert_array_equal(fork.step(ids), wanted)
        assert 0 < pool.used_bytes <= pool.max_bytes
        session.reset()
        fork.close()
        assert pool.used_bytes == 0


def test_pages_come_with_tokens_and_serve_others_once_they_are_given_back(model) -> None:
    pool = tightship.SessionPool("1MiB")
    with model.session(4096) as first:  # makes the programs and their arenas
        first.step(tokens(100))
    del first
    before = data_bytes()
    session, other = (model.session(4096, pool=pool) for _ in range(2))
    session.step(tokens(100))
    pages = 3 * 2 * 2 * 7  # of 16 rows, for 3 layers, keys and values, 2 heads
    assert pool.used_bytes == pages * 4096
    assert data_bytes() - before < 4 << 20  # of 24 MiB for both contexts
    session.step(tokens(200))
    with pytest.raises(tightship.CapacityError, match=r"112.0 KiB of the pool.s 1.00 MiB are free"):
        other.step(tokens(200))
    assert (other.length, session.length) == (0, 300)
    session.truncate(40)
    assert pool.used_bytes == 3 * 2 * 2 * 3 * 4096
    other.step(tokens(200))
    session.close()
    other.step(tokens(100))
    del other
    gc.collect()
    assert pool.used_bytes == 0
    with pytest.raises(tightship.InputError, match="was closed"):
        session.step([1])


def test_rows_of_others_are_never_seen(model) -> None:
    """Pages of a session that ended are zero in the next one that has them."""
    pool = tightship.SessionPool("600KiB")
    for _ in range(3):
        session = model.session(256, pool=pool)
        rows = session._rows
        rows.reach(0, 100)
        assert not any(array.any() for array in rows.arrays.values())
        for array in rows.arrays.values():
            array[:, :, :100] = 7
        rows.clear(50, 100)
        rows.reach(50, 100)
        assert not any(rows.part(name, 50, 100).any() for name in rows.arrays)
        del session, rows, array
        gc.collect()


def test_a_step_that_is_refused_or_stopped_leaves_all_as_it_was(model) -> None:
    pool = tightship.SessionPool("400KiB")
    session, wanted = model.session(512, pool=pool), model.session(512)
    ids = tokens(60)
    session.step(ids)
    wanted.step(ids)
    held = pool.used_bytes
    with pytest.raises(tightship.CapacityError, match="more for its caches"):
        session.step(tokens(200))
    flag = tightship.StopFlag()
    flag.set()
    with pytest.raises(tightship.StoppedError):
        session.step(tokens(20), stop=flag)
    with pytest.raises(tightship.InputError):
        session.step([50])
    assert (session.length, pool.used_bytes) == (60, held)
    ids = tokens(10)
    np.testing.assert_array_equal(session.step(ids), wanted.step(ids))


def test_an_evicted_session_computes_its_tokens_again(model) -> None:
    pool = tightship.SessionPool("500KiB", at_cap="evict")
    sessions = [model.session(512, chunk=16, pool=pool) for _ in range(3)]
    plain = [model.session(512, chunk=16) for _ in range(3)]
    prompts = [tokens(64) for _ in range(3)]
    for session, other, ids in zip(sessions, plain, prompts, strict=True):
        np.testing.assert_array_equal(session.step(ids), other.step(ids))
    assert pool.evictions == 1
    for _ in range(2):  # the same pieces run again: the same bits
        for session, other in zip(sessions, plain, strict=True):
            assert session.length == other.length
            ids = tokens(16)
            np.testing.assert_array_equal(session.step(ids), other.step(ids))
            for name, array in session._rows.arrays.items():
                np.testing.assert_array_equal(array, other._rows.arrays[name])
    assert pool.evictions >= 5
    for session, other in zip(sessions, plain, strict=True):  # other pieces: within tolerance
        for token in tokens(3):
            near(session.step([token]), other.step([token]))
        session.truncate(50)
        other.truncate(50)
    for session, other in zip(sessions, plain, strict=True):
        fork, ids = session.fork(), tokens(5)
        near(fork.step(ids), other.step(ids))
        assert (fork.length, session.length) == (55, 50)
        fork.close()
    assert pool.used_bytes <= pool.max_bytes


def test_a_session_that_is_too_long_evicts_no_other(model) -> None:
    pool = tightship.SessionPool("300KiB", at_cap="evict")
    one, other = (model.session(512, pool=pool) for _ in range(2))
    one.step(tokens(40))
    with pytest.raises(tightship.CapacityError, match=r"larger pool\."):
        other.step(tokens(400))
    assert pool.evictions == 0
    assert (one.length, other.length) == (40, 0)


def test_a_stopped_computation_leaves_the_session_evicted(model) -> None:
    pool = tightship.SessionPool("300KiB", at_cap="evict")
    one, other, plain = *(model.session(512, pool=pool) for _ in range(2)), model.session(512)
    ids = tokens(64)
    one.step(ids)
    plain.step(ids)
    other.step(tokens(64))
    assert one._kept.are_evicted
    with pytest.raises(tightship.DeadlineError):
        one.step([3], timeout_s=0)
    assert one.length == 64
    np.testing.assert_array_equal(one.step([3]), plain.step([3]))


def test_a_restored_session_is_not_evicted(model, tmp_path: Path) -> None:
    path, pool = tmp_path / "text", tightship.SessionPool("300KiB", at_cap="evict")
    plain = model.session(512)
    plain.step(tokens(64))
    plain.save(path)
    one, other = (model.session(512, pool=pool) for _ in range(2))
    one.restore(path)
    fork = one.fork()
    with pytest.raises(tightship.CapacityError):
        other.step(tokens(64))
    ids = tokens(4)
    wanted = plain.step(ids)
    np.testing.assert_array_equal(fork.step(ids), wanted)
    fork.close()
    with pytest.raises(tightship.InputError, match="64 tokens, more than the context of 16"):
        model.session(16, pool=pool).restore(path)


@pytest.mark.slow
def test_one_pool_serves_two_models_and_threads(model) -> None:
    pool = tightship.SessionPool("3MiB", at_cap="evict")

    def talk(loaded: tightship.Model, seed: int) -> None:
        random = np.random.default_rng(seed)
        plain, session = loaded.session(128, chunk=8), loaded.session(128, chunk=8, pool=pool)
        for _ in range(12):
            ids = random.integers(0, 50, 8)
            np.testing.assert_array_equal(session.step(ids), plain.step(ids))

    with tightship.load(decoders.gpt2(), shapes=SIZES) as small, ThreadPoolExecutor(4) as threads:
        list(threads.map(talk, (model, small) * 2, range(4)))
    gc.collect()
    assert pool.used_bytes == 0


def test_a_fork_beyond_the_cap_is_refused_and_changes_nothing(model) -> None:
    pool = tightship.SessionPool("240KiB")
    session, plain = model.session(512, pool=pool), model.session(512)
    ids = tokens(70)
    session.step(ids)
    plain.step(ids)
    with pytest.raises(tightship.CapacityError, match=r"needs 48\.0 KiB more .* 0 B of the pool"):
        session.fork()
    assert (session.length, pool.used_bytes) == (70, 240 << 10)
    np.testing.assert_array_equal(session.step([1]), plain.step([1]))


def test_a_limit_of_loading_counts_a_pool_once() -> None:
    data = decoders.llama()
    with tightship.load(data, shapes=SIZES) as loaded:
        session = loaded.session(1024, chunk=16)
        fixed = loaded.plan.peak_bytes + session._programs.planned_bytes()
    pool, second = tightship.SessionPool("1MiB"), tightship.SessionPool("1MiB")
    with tightship.load(data, shapes=SIZES, max_memory=fixed + (1 << 20)) as loaded:
        sessions = [loaded.session(1024, chunk=16, pool=pool) for _ in range(5)]
        sessions.append(sessions[0].fork())
        for given in (second, None):
            with pytest.raises(tightship.CapacityError, match=r"caches of 6 others 1\.00 MiB"):
                loaded.session(1024, chunk=16, pool=given)
    with (
        tightship.load(data, shapes=SIZES, max_memory=fixed + (1 << 20) - 1) as loaded,
        pytest.raises(tightship.CapacityError, match="ask for a smaller pool"),
    ):
        loaded.session(1024, chunk=16, pool=pool)


def test_what_a_pool_does_not_know_is_refused() -> None:
    with pytest.raises(tightship.InputError, match='"refuse", "evict" or "spill"'):
        tightship.SessionPool("1GiB", at_cap="wait")
    with pytest.raises(tightship.InputError, match="max_bytes"):
        tightship.SessionPool(100)
    assert "0 B of 1.00 GiB" in repr(tightship.SessionPool("1GiB"))


def test_private_bytes_of_a_fork_grow_with_what_it_writes(model) -> None:
    model.session(2048).step(tokens(500))  # makes the programs
    session = model.session(2048)
    session.step(tokens(1000))
    session.fork().step([1])
    session.step([1])
    gc.collect()
    release_heap()  # as a program that is made later does, with what other tests left
    before, state = written_pss_bytes(), 1000 * 3 * 2 * 2 * 64 * 4
    forks = [session.fork() for _ in range(4)]
    assert written_pss_bytes() - before < state / 4  # a page of each of 12 runs and range of pages
    for fork in forks:
        assert fork._rows.shared_bytes > 0.98 * state
        fork.step([1])
    assert written_pss_bytes() - before < state / 4
    grown = []
    for fork in forks[:3]:
        now = written_pss_bytes()
        fork.step(tokens(500))
        grown.append(written_pss_bytes() - now)
    # The middle one, because idle memory may be given back, or taken again, during another.
    assert state / 4 < sorted(grown)[1] < 0.8 * state


CONTEXTS = """
import tightship
from tests import decoders
from tests.process_memory import written_pss_bytes
size = decoders.Size(layers=4, heads=4, shared=4, length=64, positions=8192)
gained = []
with tightship.load(decoders.llama(size), shapes=dict(
    batch_size=1, sequence_length=1, past_sequence_length=1)) as model:
    for context in (2048, 8192, 2048, 8192):
        for pool in (tightship.SessionPool("1GiB"), None):
            before = written_pss_bytes()
            session = model.session(context, chunk=16, pool=pool)
            session.step(list(range(20)))
            gained.append(written_pss_bytes() - before)
            del session
pooled, reserved = gained[4::2], gained[5::2]
assert abs(pooled[1] - pooled[0]) < 2 << 20, gained
assert abs(reserved[1] - reserved[0]) < 2 << 20, gained
"""


@pytest.mark.slow
def test_a_longer_context_takes_no_more_memory_for_a_short_prompt() -> None:
    done = subprocess.run(
        [sys.executable, "-c", CONTEXTS], capture_output=True, text=True, check=False,
        env=os.environ | {"PYTHONPATH": os.getcwd()},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
