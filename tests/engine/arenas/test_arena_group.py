"""Models of one process that take arenas in turns: bytes are counted."""

from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager

import numpy as np
import pytest

import tightship
from tests.small_models import dense
from tightship.engine.arenas.arena_group import ArenaGroup
from tightship.engine.arenas.retention import Retention
from tightship.engine.run.limits import Limits

PATIENCE_S = 60
SHAPES = {"x": (64, 32)}
MODEL = dense(hidden=96)[0]


def rows(count):
    return np.random.default_rng(count).standard_normal((count, 32), np.float32)


@pytest.fixture
def arenas():
    joint = ArenaGroup(Retention(None))
    yield joint
    joint.close()


def loaded(arenas, **options):
    return tightship.load(MODEL, shapes=SHAPES, arena_pool=arenas, **options)


def executable(model):
    """The program of loading, for which a test has an arena as a run does."""
    program = model._programs._pinned(model._key, Limits())
    model._programs._unpin(program)
    return program.executable


@contextmanager
def had(model):
    """Reserve arenas meanwhile, as a run of the model does."""
    pool = model._programs._pool
    room = pool.reserve(executable(model), Limits(), 0)
    try:
        yield
    finally:
        pool.release(room, 0)


def test_models_that_run_alternately_have_one_arena(arenas):
    models = [loaded(arenas) for _ in range(8)]
    one = models[0].plan.arena_bytes
    for model in models:
        model(rows(64))
    assert one <= arenas.held_bytes < 2 * one
    assert arenas.used_bytes == 0
    for model in models:
        assert model.memory_stats().arena_bytes == 0
        model.close()


def test_as_many_arenas_are_there_as_run_at_once(arenas):
    models = [loaded(arenas) for _ in range(5)]
    one = models[0].plan.arena_bytes
    with ExitStack() as running:
        for model in models[:3]:
            running.enter_context(had(model))
        models[4](rows(64))
        assert 4 * one <= arenas.held_bytes < 5 * one
        assert 3 * one <= arenas.used_bytes < 4 * one
    for model in models:
        model(rows(64))
    assert arenas.held_bytes < 5 * one
    assert arenas.used_bytes == 0


def test_results_are_those_of_an_arena_of_ones_own(arenas):
    with (
        loaded(arenas) as one,
        loaded(arenas) as other,
        tightship.load(MODEL, shapes=SHAPES) as own,
    ):
        for count in (64, 900, 1, 37, 900):
            wanted = own(rows(count)).copy()
            np.testing.assert_array_equal(one(rows(count)), wanted)
            np.testing.assert_array_equal(other(rows(count)), wanted)


def test_threads_of_several_models_share(arenas):
    models = [loaded(arenas) for _ in range(3)]
    wanted = {count: models[0](rows(count)).copy() for count in (2, 64, 300)}

    def work(model, count):
        for _ in range(20):
            np.testing.assert_array_equal(model(rows(count)), wanted[count])

    with ThreadPoolExecutor(6) as threads:
        pairs = [(model, count) for model in models for count in wanted]
        for future in [threads.submit(work, *pair) for pair in pairs]:
            future.result(PATIENCE_S)
    assert arenas.used_bytes == 0


def test_a_model_that_is_closed_takes_what_only_it_needed_along(arenas):
    small, large = loaded(arenas), loaded(arenas)
    small(rows(64))
    before = arenas.held_bytes
    large(rows(4096))
    assert arenas.held_bytes > 4 * before
    large.close()
    assert arenas.held_bytes <= before
    small(rows(64))
    small.close()
    assert arenas.held_bytes == 0
    with pytest.raises(tightship.InputError, match="closed"):
        small(rows(64))


def test_nothing_of_a_closed_model_is_kept(arenas):
    with loaded(arenas) as one:
        other = loaded(arenas)
        one(rows(64))
        other(rows(64))
        gone = executable(other)
        assert any(gone in room.arenas for room in arenas.pool._free)
        other.close()
        assert not any(gone in room.arenas for room in arenas.pool._free)


def test_a_run_that_waits_for_an_arena_heeds_its_deadline():
    arenas = ArenaGroup(arenas=1)
    with loaded(arenas) as one, loaded(arenas) as other:
        with had(one), pytest.raises(tightship.DeadlineError):
            other.run({"x": rows(64)}, timeout_s=0.02)
        with had(one), loaded(arenas):  # nor does loading wait
            pass
        assert other.run({"x": rows(64)})
    arenas.close()


def test_a_limit_holds_for_runs_of_one_model_at_once(arenas):
    limit = tightship.plan(MODEL, shapes=SHAPES).peak_bytes
    with loaded(arenas, max_memory=limit) as model, loaded(arenas) as free:
        with had(model), pytest.raises(tightship.DeadlineError):
            model.run({"x": rows(64)}, timeout_s=0.02)
        with had(model):
            free(rows(64))
        model(rows(64))
        assert model.memory_stats().arena_peak_bytes == model.plan.arena_bytes
