"""Pools of steps whose shapes follow from data: reused, bounded, and never under a held result."""

import gc
import multiprocessing
import os
import subprocess
import sys
import time

import numpy as np
import pytest

from tests.at_once import at_once
from tests.zoo.net import Net
from tightship import InputError, OutOfMemoryError, load
from tightship.engine.arenas.model_pools import ModelPools
from tightship.engine.primitive_cache import BUDGET

MIB = 1 << 20
ROWS, WIDTH = 4096, 64


def chosen() -> bytes:
    """A model of three unplanned steps on the rows that an input chooses."""
    net = Net(1)
    keep = net.input("keep", np.ones(ROWS, bool))
    y = net("Compress", net.normal("x", ROWS, WIDTH), keep, axis=0)
    net.output(net("Mul", net("Add", y, y), y))
    return net.case().model


X = np.arange(ROWS * WIDTH, dtype=np.float32).reshape(ROWS, WIDTH) / ROWS


def first(count):
    return np.arange(ROWS) < count


def expected(count):
    return 2 * X[:count] * X[:count]


def pools_of(model):
    return model._programs.dynamic.statistics


@pytest.fixture
def model():
    with load(chosen(), idle_s=None) as made:
        yield made


def test_later_runs_make_no_pools(model):
    for count in (4096, 1500, 3000, 4096, 700):
        np.testing.assert_array_equal(model(x=X, keep=first(count)), expected(count))
    made = pools_of(model)
    for count in (4096, 1500, 3000, 4096, 700) * 3:
        model(x=X, keep=first(count))
    now = pools_of(model)
    assert now.created == made.created
    assert now.reused >= made.reused + 30
    assert now.peak_bytes == made.peak_bytes


def test_results_that_are_held_are_never_overwritten(model):
    counts = [(97 * k) % ROWS + 1 for k in range(40)]
    held = [model(x=X, keep=first(count)) for count in counts]
    for count, result in zip(counts, held, strict=True):
        np.testing.assert_array_equal(result, expected(count))
    view = held[0][:1]
    held.clear()
    for count in counts:
        model(x=X, keep=first(count))
    np.testing.assert_array_equal(view, expected(1))


def test_a_result_outlives_its_model():
    model = load(chosen())
    result = model(x=X, keep=first(3000))
    dynamic = model._programs.dynamic
    model.close()
    del model
    gc.collect()
    np.testing.assert_array_equal(result, expected(3000))
    assert dynamic.statistics.reserved_count == 1
    del result
    assert dynamic.statistics.reserved_count == dynamic.statistics.free_count == 0


@pytest.mark.parametrize("budget", [0, "1MiB", "3MiB"])
def test_free_pools_stay_within_the_budget(budget):
    with load(chosen(), pool_budget=budget, idle_s=None) as model:
        most = 0 if budget == 0 else int(budget[0]) * MIB
        for count in (4096, 2000, 4000, 1000):
            np.testing.assert_array_equal(model(x=X, keep=first(count)), expected(count))
            assert pools_of(model).free_bytes <= most


def test_a_budget_that_is_no_amount_is_refused():
    with pytest.raises(InputError, match="pool_budget"):
        load(chosen(), pool_budget="much")


def test_the_environment_sets_the_budget():
    program = (
        "from tests.engine.arenas.test_model_pools import *\n"
        "with load(chosen(), idle_s=None) as model:\n"
        "    model(x=X, keep=first(4096))\n"
        "    print(pools_of(model).free_bytes)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], env={**os.environ, BUDGET: "1MiB"}, text=True,
        capture_output=True, check=True,
    )  # fmt: skip
    assert int(done.stdout) <= MIB


def test_the_limit_counts_what_is_alive_and_what_is_free():
    limit = 3 * MIB
    with load(chosen(), dynamic_memory=limit, idle_s=None) as model:
        for count in (1000, 3000, 2000, 3900, 3000):
            np.testing.assert_array_equal(model(x=X, keep=first(count)), expected(count))
            assert pools_of(model).peak_bytes <= limit
    with load(chosen(), dynamic_memory=MIB, idle_s=None) as model:
        with pytest.raises(OutOfMemoryError, match="dynamic_memory"):
            model(x=X, keep=first(4096))
        np.testing.assert_array_equal(model(x=X, keep=first(1000)), expected(1000))


def test_pools_shrink_to_what_is_needed_lately(model):
    model(x=X, keep=first(4096))
    large = pools_of(model).free_bytes
    assert large >= 2 * MIB
    for _ in range(80):
        model(x=X, keep=first(400))
    assert pools_of(model).free_bytes <= 400 * WIDTH * 4 * 3 + MIB // 4


def test_idle_pools_go_back_and_so_do_results_that_are_dropped_then():
    with load(chosen(), idle_s=0.05) as model:
        result = model(x=X, keep=first(4096))
        assert pools_of(model).free_bytes > 0
        for _ in range(200):
            if not pools_of(model).free_bytes:
                break
            time.sleep(0.02)
        assert pools_of(model).free_bytes == 0
        del result
        assert pools_of(model).free_bytes == 0
        np.testing.assert_array_equal(model(x=X, keep=first(9)), expected(9))


def test_the_model_tells_and_releases_what_its_pools_hold(model):
    model(x=X, keep=first(4096))
    told = model.memory_stats()
    assert told.dynamic_bytes == pools_of(model).free_bytes > 0
    assert told.dynamic_peak_bytes >= told.dynamic_bytes
    assert model.release_unused_memory() >= told.dynamic_bytes
    assert model.memory_stats().dynamic_bytes == 0


def test_threads_share_the_pools(model):
    def run(seed):
        random = np.random.default_rng(seed)
        for _ in range(20):
            count = int(random.integers(1, ROWS))
            np.testing.assert_array_equal(model(x=X, keep=first(count)), expected(count))

    at_once(run, range(4))
    assert pools_of(model).reserved_count == 0


def test_two_workers_and_two_threads_give_the_same():
    for settings in ({"workers": 2}, {"threads": 2}):
        with load(chosen(), **settings) as model:
            for count in (4096, 100, 2500):
                np.testing.assert_array_equal(model(x=X, keep=first(count)), expected(count))


def test_a_run_that_fails_leaves_its_pools_free():
    net = Net(1)
    keep = net.input("keep", np.ones(ROWS, bool))
    y = net("Compress", net.normal("x", ROWS, WIDTH), keep, axis=0)
    net.output(net("Gather", net("Add", y, y), net.input("at", np.int64(0))))
    with load(net.case().model, idle_s=None) as model:
        with pytest.raises(Exception, match=r"3000"):
            model(x=X, keep=first(3000), at=np.int64(3000))
        assert pools_of(model).reserved_count == 0
        row = model(x=X, keep=first(3000), at=np.int64(2999))
        np.testing.assert_array_equal(row, 2 * X[2999])


def _in_child(model):
    for count in (4096, 50, 3000):
        np.testing.assert_array_equal(model(x=X, keep=first(count)), expected(count))


def test_a_forked_child_has_its_own(model):
    held = model(x=X, keep=first(2000))
    child = multiprocessing.get_context("fork").Process(target=_in_child, args=(model,))
    child.start()
    child.join(60)
    assert child.exitcode == 0
    np.testing.assert_array_equal(held, expected(2000))
    np.testing.assert_array_equal(model(x=X, keep=first(4000)), expected(4000))


def test_a_scope_does_not_stay_open_after_a_run(model):
    model(x=X, keep=first(4096))
    before = pools_of(model)
    kept = np.ones(MIB, np.float32)
    after = pools_of(model)
    assert (after.created, after.reused) == (before.created, before.reused)
    assert kept.all()


def test_memory_of_a_run_counts_from_its_begin_to_its_end():
    pools = ModelPools(64 * MIB)
    memory = pools.begin()
    with memory:
        first_array = np.ones(MIB, np.uint8)
    pools.end(memory)
    assert pools.statistics.reserved_count == 1
    del first_array
    assert pools.statistics.free_count == 1
    assert pools.release_unused() >= MIB
