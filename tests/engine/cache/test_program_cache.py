import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import tightship
from tests.models import filled, parse
from tests.processor import HAS_AVX512
from tests.small_models import dense
from tests.zoo.open_lengths import sound
from tightship.engine.run.limits import Limits

PATIENCE_S = 20


def rows(count, seed=0):
    return np.random.default_rng(seed).standard_normal((count, 32), np.float32)


def open_dense(**options):
    return tightship.load(dense()[0], shapes={"x": (4, 32)}, **options)


def test_a_shape_is_prepared_once_and_found_again():
    with open_dense() as model:
        for count in (4, 5, 4, 5, 6):
            model(rows(count))
        found = model.programs
        assert (found.held, found.hits, found.misses, found.evictions) == (3, 3, 2, 0)


def test_the_least_recently_used_shape_is_evicted():
    with open_dense(programs=2) as model:
        for count in (5, 4, 6):
            model(rows(count))
        assert (model.programs.held, model.programs.evictions) == (2, 1)
        misses = model.programs.misses
        model(rows(4))
        assert model.programs.misses == misses
        model(rows(5))
        assert model.programs.misses == misses + 1


def test_programs_are_bounded_by_their_bytes():
    with open_dense() as model:
        one = model.programs.bytes
    with open_dense(program_memory=3 * one) as model:
        for count in range(4, 12):
            model(rows(count))
        found = model.programs
        assert 1 < found.held <= 3
        assert found.bytes <= 3 * one


def test_programs_of_many_lengths_count_what_they_hold():
    """The reservations of their kernels would be 100 MiB; the process gains 5 or 6."""
    with tightship.load(sound(), shapes={"x": (1, 8, 64)}) as model:
        for length in range(16, 103, 3):
            model(np.zeros((1, 8, length), np.float32))
            model(np.zeros((1, 8, length), np.float32))
        found = model.programs
    assert (found.held, found.evictions) == (29, 0)
    assert found.bytes < (12 if HAS_AVX512 else 20) << 20


def test_weights_are_there_once_whatever_the_shapes():
    with open_dense() as model:
        resource, before = model._programs.resource, model._programs.resource.current_bytes
        for count in (1, 2, 3):
            model(rows(count))
        assert resource.current_bytes == before


def test_memory_of_a_large_program_is_given_back_with_it():
    with open_dense(programs=2) as model:
        before = model.memory_stats()
        model(rows(4000))
        large = model.memory_stats()
        assert large.arena_bytes > before.arena_bytes + (1 << 16)
        model(rows(4))
        model(rows(3))
        after = model.memory_stats()
        assert (after.arena_bytes, after.weights_bytes) == (
            before.arena_bytes, before.weights_bytes
        )  # fmt: skip
        assert after.arena_peak_bytes == large.arena_peak_bytes == large.arena_bytes


def test_threads_that_ask_for_one_new_shape_have_it_made_once():
    with open_dense() as model, ThreadPoolExecutor(8) as threads:
        wanted = model(rows(9))
        for future in [threads.submit(model, rows(count)) for count in [9, 7] * 20]:
            assert future.result(PATIENCE_S).shape[0] in (7, 9)
        assert model.programs.misses == 2
        np.testing.assert_array_equal(model(rows(9)), wanted)


def test_a_program_stays_while_a_run_has_it():
    with open_dense(programs=1) as model, ThreadPoolExecutor(1) as threads:
        with model._programs.reserved(model._key, Limits()):
            waiting = threads.submit(model, rows(5))
            with pytest.raises(TimeoutError):
                waiting.result(0.2)
            assert model.programs.held == 1
        assert waiting.result(PATIENCE_S).shape == (5, 8)


def test_waiting_for_room_ends_by_the_deadline_and_leaves_the_shape_free():
    with open_dense(programs=1) as model:
        with model._programs.reserved(model._key, Limits()), ThreadPoolExecutor(1) as threads:
            late = threads.submit(model.run, {"x": rows(5)}, timeout_s=0.2)
            with pytest.raises(tightship.DeadlineError):
                late.result(PATIENCE_S)
        assert model(rows(5)).shape == (5, 8)


def test_closing_waits_for_a_run_and_refuses_those_that_wait_for_room():
    model = open_dense(programs=1)
    with ThreadPoolExecutor(2) as threads:
        scope = model._programs.reserved(model._key, Limits())
        scope.__enter__()
        waiting = threads.submit(model, rows(5))
        closing = threads.submit(model.close)
        with pytest.raises(TimeoutError):
            closing.result(0.1)
        scope.__exit__(None, None, None)
        closing.result(PATIENCE_S)
        with pytest.raises(tightship.InputError, match="closed"):
            waiting.result(PATIENCE_S)


def test_a_limit_refuses_a_shape_before_anything_is_made():
    limit = tightship.plan(dense()[0], shapes={"x": (400, 32)}).peak_bytes
    with open_dense(max_memory=limit) as model:
        before = model._programs.resource.allocation_count
        with pytest.raises(tightship.CapacityError, match=r"`x` \[4000, 32\]") as refused:
            model(rows(4000))
        assert refused.value.limit_bytes == limit
        assert refused.value.needed_bytes == model.plan_for({"x": (4000, 32)}).peak_bytes
        assert model._programs.resource.allocation_count == before
        assert model(rows(4)).shape == (4, 8)
    with open_dense(max_memory=refused.value.needed_bytes) as model:
        assert model(rows(4000)).shape == (4000, 8)


def test_what_is_held_never_exceeds_the_limit():
    with open_dense() as model:
        limit = model.plan_for({"x": (900, 32)}).peak_bytes
    with open_dense(max_memory=limit) as model, ThreadPoolExecutor(4) as threads:
        counts = [4, 900, 5, 450, 6, 880, 4, 900] * 4
        for future, count in [(threads.submit(model, rows(c)), c) for c in counts]:
            assert future.result(PATIENCE_S).shape == (count, 8)
        cache = model._programs
        fixed = cache._fixed_bytes - model.plan.weights_bytes
        page, held = 4096 * 4, model.memory_stats()
        assert held.weights_bytes + held.arena_bytes + fixed + held.program_bytes <= limit + page
        peak = cache.resource.peak_bytes + held.arena_peak_bytes
        assert peak + fixed <= limit + page, "programs at that time aside"


def test_a_shape_that_cannot_be_run_leaves_the_model_usable():
    data = parse(
        "g (float[n, 8] x, float[m, 8] z) => (float[n, 8] y) { y = Add (x, z) }"
    ).SerializeToString()
    with tightship.load(data, shapes={"x": (2, 8), "z": (2, 8)}) as model:
        with pytest.raises(tightship.GraphError):
            model(x=filled(3, 8), z=filled(2, 8))
        assert model(x=filled(3, 8), z=filled(1, 8)).shape == (3, 8)
        assert model.programs.held == 2


def test_symbols_must_agree_and_fixed_lengths_stay():
    data = parse(
        "g (float[n, 8] x, float[n, 8] z) => (float[n, 8] y) { y = Add (x, z) }"
    ).SerializeToString()
    with tightship.load(data, shapes={"x": (2, 8), "z": (2, 8)}) as model:
        with pytest.raises(tightship.InputError, match="`n` is 3"):
            model(x=filled(3, 8), z=filled(2, 8))
        with pytest.raises(tightship.InputError, match=r"\[2, 9\]; the plan was made for \[2, 8\]"):
            model(x=filled(2, 9), z=filled(2, 8))
        assert model.programs.held == 1


def test_plans_of_other_shapes_are_had_without_loading():
    with open_dense() as model:
        before = model._programs.resource.allocation_count
        small, large = model.plan_for({}), model.plan_for({"x": (400, 32)})
        assert small is model.plan
        assert large.io_bytes == 100 * small.io_bytes
        assert large.weights_bytes == small.weights_bytes
        assert model._programs.resource.allocation_count == before
        assert model.programs.held == 1
        with pytest.raises(tightship.InputError, match="Unknown input `y`"):
            model.plan_for({"y": (1,)})


def test_runs_of_different_shapes_go_on_side_by_side():
    with open_dense() as model, ThreadPoolExecutor(6) as threads:
        wanted = {count: model(rows(count)).copy() for count in (1, 3, 8, 64)}
        barrier = threading.Barrier(4)

        def work(count):
            barrier.wait(PATIENCE_S)
            for _ in range(50):
                np.testing.assert_array_equal(model(rows(count)), wanted[count])

        for future in [threads.submit(work, count) for count in wanted]:
            future.result(PATIENCE_S)
