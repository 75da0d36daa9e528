"""Models whose primitives and memory are had for each call, against the same ones planned."""

import itertools
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from tests.engine.graphs import graph_of, inputs_of, prepared, run, static_graph
from tests.engine.test_primitive_cache import UNBOUNDED
from tests.models import filled
from tightship import _core
from tightship._core import FailingResource, PoolManager, PrimitiveCache, StopFlag
from tightship.engine.run.limits import Limits
from tightship.engine.run.stepwise import LIBRARY_MANAGED, PLAIN, Pattern, Stepwise
from tightship.engine.weights.weight_store import WeightStore
from tightship.errors import DeadlineError, InputError, OutOfMemoryError, StoppedError
from tightship.model import feeds
from tightship.resource import HostResource

pytestmark = pytest.mark.skipif(not _core.HAS_ONEDNN, reason="built without oneDNN")
NAMES = ("residual", "residual of batch 3, 17 channels", "mobile", "segmenter", "encoder")
MORE_NAMES = ("mobile of batch 2", "detector", "convolutions", "shuffled", "decoder", "recurrent")
FIVE = ("residual", "mobile", "segmenter", "encoder", "decoder")
NAME = "residual"
PATTERNS = (PLAIN, LIBRARY_MANAGED, Pattern(grouping="blob"), Pattern(True, "offset"))


def cache_of(entries=99, *, is_cached=True):
    return PrimitiveCache(entries, UNBOUNDED, PoolManager(UNBOUNDED), is_cached=is_cached)


class Runner:
    """A graph run step by step on inputs of its shapes."""

    def __init__(self, graph, cache, pattern=PLAIN, resource=None, threads=1):
        placement = prepared(graph, threads=threads).placement
        store = WeightStore(HostResource())
        self.stepwise = Stepwise(placement, cache, resource or HostResource(), store, pattern)
        self.lowered = placement.lowered
        self.fed = feeds.bind(self.lowered, inputs_of(graph), {})

    def __call__(self, limits=None):
        self.stepwise.run(self.fed.external, limits)
        return {name: self.fed.external[operand.slot].copy()
                for name, operand in self.lowered.outputs.items()}  # fmt: skip


def assert_equal(found, wanted):
    assert found.keys() == wanted.keys()
    for name, value in wanted.items():
        np.testing.assert_array_equal(found[name], value)


@pytest.mark.parametrize("is_cached", [True, False])
@pytest.mark.parametrize("name", NAMES)
def test_every_pattern_gives_what_the_plan_does(name, is_cached):
    graph = static_graph(name)
    wanted = run(graph)
    for pattern in PATTERNS:
        runner = Runner(graph, cache_of(is_cached=is_cached), pattern)
        for _ in range(2):
            assert_equal(runner(), wanted)


@pytest.mark.parametrize("entries", [0, 1, 99])
def test_primitives_are_had_from_the_cache_as_far_as_it_holds_them(entries):
    cache = cache_of(entries)
    runner = Runner(static_graph(NAME), cache)
    runner()
    first = cache.statistics().misses
    runner()
    again = cache.statistics().misses - first
    assert cache.statistics().entries <= entries
    assert cache.statistics().idle_entries == cache.statistics().entries
    assert (again == 0) == (entries == 99)


def test_a_second_run_takes_no_memory_that_the_first_has_left():
    for pattern in PATTERNS:
        host = HostResource()
        runner = Runner(static_graph("segmenter"), cache_of(), pattern, host)
        for _ in range(3):
            runner()
        count = host.allocation_count
        runner()
        assert host.allocation_count == count


def test_on_demand_memory_is_all_given_back():
    host = HostResource()
    runner = Runner(static_graph("segmenter"), cache_of(is_cached=False), LIBRARY_MANAGED, host)
    for _ in range(2):
        before = host.allocation_count
        runner()
        assert host.current_bytes == 0
        assert host.allocation_count - before > len(runner.lowered.steps)


def test_a_refused_request_ends_the_run_and_leaves_nothing():
    graph = static_graph(NAME)
    wanted = run(graph)
    for refused in itertools.count(1):
        host = HostResource()
        failing = FailingResource(host, refused)
        runner = Runner(graph, cache_of(is_cached=False), LIBRARY_MANAGED, failing)
        try:
            assert_equal(runner(), wanted)
            break
        except OutOfMemoryError:
            assert host.current_bytes == 0
    assert refused > len(runner.lowered.steps)


def test_limits_end_a_run_between_steps():
    host, stop = HostResource(), StopFlag()
    runner = Runner(static_graph(NAME), cache_of(is_cached=False), resource=host)
    with pytest.raises(DeadlineError):
        runner(Limits(deadline_ns=1))
    stop.set()
    with pytest.raises(StoppedError):
        runner(Limits(stop))
    assert host.current_bytes == 0


def test_a_step_that_runs_in_python_is_refused_by_name():
    graph = graph_of("g (float[2, 2] x) => (float y) { y = Det (x) }")
    with pytest.raises(InputError, match="runs in Python"):
        Runner(graph, cache_of())


def test_threads_share_primitives_and_have_pools_of_their_own():
    graph, cache, host = static_graph(NAME), cache_of(), HostResource()
    wanted = run(graph)
    runners = [Runner(graph, cache, LIBRARY_MANAGED, host) for _ in range(8)]
    with ThreadPoolExecutor(8) as pool:
        for found in pool.map(lambda runner: [runner() for _ in range(5)], runners):
            for results in found:
                assert_equal(results, wanted)
    assert cache.statistics().misses == cache.statistics().entries
    assert cache.pools.statistics().reserved_count == 0


def test_eviction_while_primitives_run_changes_no_result():
    graph, cache, done = static_graph(NAME), cache_of(), threading.Event()
    wanted = run(graph)

    def squeeze():
        for entries in itertools.cycle((0, 3, 1, 99)):
            if done.is_set() and cache.statistics().evictions > 0:
                return
            cache.set_capacity(entries, 1 << 17)
            cache.pools.budget_bytes = entries << 10

    runners = [Runner(graph, cache, LIBRARY_MANAGED) for _ in range(2)]
    with ThreadPoolExecutor(3) as pool:
        squeezing = pool.submit(squeeze)
        try:
            for found in pool.map(lambda runner: [runner() for _ in range(20)], runners):
                for results in found:
                    assert_equal(results, wanted)
        finally:
            done.set()
        squeezing.result()
    assert cache.statistics().evictions > 0


def convolution(number):
    """A network of one convolution; every number has another shape."""
    channels, image = 1 + number % 10, 5 + number // 50
    outputs, kernel = 1 + number // 10 % 5 * 7, 1 + 2 * (number % 2)
    text = f"""g (float[1, {channels}, {image}, {image}] x) => (float[1, {outputs}, n, m] y) {{
        y = Conv (x, w)
    }}"""
    return graph_of(text, w=filled(outputs, channels, kernel, kernel))


def convolved(image, weights):
    """Compute a convolution without padding."""
    windows = np.lib.stride_tricks.sliding_window_view(image, weights.shape[2:], (2, 3))
    return np.einsum("nchwij,ocij->nohw", windows, weights)


@pytest.mark.slow
def test_five_hundred_convolutions_at_capacity_99_are_right_and_bounded():
    cache, resource = cache_of(99), HostResource()
    for number in range(500):
        graph = convolution(number)
        found = Runner(graph, cache, LIBRARY_MANAGED, resource)()["y"]
        (weights,) = graph.constants.values()
        wanted = convolved(inputs_of(graph)["x"], weights.array())
        np.testing.assert_allclose(found, wanted, rtol=2e-4, atol=2e-5)
        assert cache.statistics().entries <= 99
    assert cache.statistics().evictions >= 400
    cache.pools.trim()
    assert resource.current_bytes == 0


@pytest.mark.slow
def test_models_one_after_another_at_capacity_99_are_right_and_bounded():
    cache = cache_of(99)
    names = (*NAMES, *MORE_NAMES)
    runners = [Runner(static_graph(name), cache, pattern) for name in names for pattern in PATTERNS]
    wanted = [run(static_graph(name)) for name in names for _ in PATTERNS]
    for _ in range(2):
        for runner, results in zip(runners, wanted, strict=True):
            assert_equal(runner(), results)
            assert cache.statistics().entries <= 99
    assert cache.statistics().evictions > 0


@pytest.mark.parametrize("grouping", ["value", "blob", "offset"])
def test_alternating_models_make_no_pools_once_each_has_run(grouping):
    cache, host = cache_of(), HostResource()
    runners = [Runner(static_graph(name), cache, Pattern(grouping=grouping), host) for name in FIVE]
    wanted = [runner() for runner in runners]
    for runner in (*reversed(runners), *runners):  # larger pools take the place of smaller ones
        runner()
    before = cache.pools.statistics()
    for _ in range(10):
        for runner, value in zip(runners, wanted, strict=True):
            assert_equal(runner(), value)
    now = cache.pools.statistics()
    assert (now.created, now.trimmed) == (before.created, before.trimmed)
    assert now.reused > before.reused
