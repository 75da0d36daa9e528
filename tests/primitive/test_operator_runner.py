"""Models run operator by operator with cached primitives and reused pools."""

import subprocess
import sys
import threading

import numpy as np
import pytest
from onnx import numpy_helper, parser

import tightship
from tests.zoo.net import Net
from tests.zoo.networks import network
from tightship import _core, primitive
from tightship.engine.primitive_cache import BUDGET
from tightship.errors import CapacityError, DeadlineError, InputError, OutOfMemoryError
from tightship.resource import HostResource, LimitingResource

pytestmark = pytest.mark.skipif(not _core.HAS_ONEDNN, reason="built without oneDNN")
NAMES = ("residual", "mobile of batch 2", "encoder", "decoder")
MANY = 1 << 30


def cache_of(entries: int = 99, budget_bytes: int = MANY) -> primitive.PrimitiveCache:
    return primitive.PrimitiveCache(entries, MANY, primitive.PoolManager(budget_bytes))


@pytest.mark.parametrize("memory", ["value", "blob", "offset"])
@pytest.mark.parametrize("name", NAMES)
def test_results_are_those_of_the_planned_model(name: str, memory: primitive.Memory) -> None:
    case, _ = network(name)
    with tightship.load(case.model) as model:
        wanted = model.run(case.feeds)
    runner = primitive.OperatorRunner(case.model, memory=memory, cache=cache_of())
    for _ in range(2):
        found = runner.run(case.feeds)
        for key, value in wanted.items():
            np.testing.assert_array_equal(found[key], value)


def test_warm_rounds_create_nothing_whatever_the_order() -> None:
    cache = cache_of()
    runners = [
        (primitive.OperatorRunner(network(name)[0].model, cache=cache), network(name)[0].feeds)
        for name in NAMES
    ]
    for runner, given in [*runners, *reversed(runners)]:
        runner.run(given)
    before, created = cache.statistics().misses, cache.pools.statistics().created
    for runner, given in [*reversed(runners), *runners, *runners[1:], runners[0]]:
        runner.run(given)
    assert cache.statistics().misses == before
    assert cache.pools.statistics().created == created
    assert cache.pools.statistics().reserved_count == 0


def test_the_cache_keeps_no_more_than_its_entries_and_budget() -> None:
    case, _ = network(NAMES[0])
    cache = cache_of(entries=2, budget_bytes=4096)
    primitive.OperatorRunner(case.model, cache=cache).run(case.feeds)
    assert cache.statistics().entries <= 2
    assert cache.pools.statistics().free_bytes <= 4096


def test_results_stay_the_callers() -> None:
    case, _ = network(NAMES[0])
    runner = primitive.OperatorRunner(case.model, cache=cache_of())
    first = runner.run(case.feeds)
    kept = {name: value.copy() for name, value in first.items()}
    runner.run({name: value * 2 for name, value in case.feeds.items()})
    for name, value in kept.items():
        np.testing.assert_array_equal(first[name], value)


def test_threads_take_turns() -> None:
    case, _ = network(NAMES[0])
    runner = primitive.OperatorRunner(case.model, memory="offset", cache=cache_of())
    (wanted,) = runner.run(case.feeds).values()
    results: list[np.ndarray] = []

    def work() -> None:
        results.extend(value for _ in range(5) for value in runner.run(case.feeds).values())

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(results) == 20
    for value in results:
        np.testing.assert_array_equal(value, wanted)


def test_open_lengths_are_given_as_for_load() -> None:
    model = tightship.sample.sample("mlp")
    runner = primitive.OperatorRunner(model, shapes={"batch": 3})
    scores = runner(x=np.ones((3, 784), np.float32))
    assert isinstance(scores, np.ndarray)
    assert scores.shape == (3, 10)
    assert runner.cache is primitive.process_cache()


def test_a_resource_that_refuses_leaves_the_runner_usable() -> None:
    case, _ = network(NAMES[0])
    limit = LimitingResource(HostResource(), 1000)
    runner = primitive.OperatorRunner(case.model, cache=cache_of(), resource=limit)
    for _ in range(2):
        with pytest.raises((OutOfMemoryError, CapacityError)):
            runner.run(case.feeds)
    assert runner.cache.pools.statistics().reserved_count == 0


def test_a_deadline_that_has_passed_ends_the_run() -> None:
    case, _ = network(NAMES[0])
    runner = primitive.OperatorRunner(case.model, cache=cache_of())
    with pytest.raises(DeadlineError):
        runner.run(case.feeds, timeout_s=1e-9)
    runner.run(case.feeds)


LOOPS = {
    "counted": ("""(int64 n, float[8, 64] x) => (float[8, 64] y) {
      go = Constant <value: tensor = bool {1}> ()
      y = Loop (n, go, x) <body = b (int64 i, bool c, float[8, 64] s)
        => (bool more, float[8, 64] t) { more = Identity (c) m = MatMul (s, w) t = Tanh (m) }>
    }""", {"n": np.int64(5)}),
    "nested": ("""(int64 n, float[8, 64] x) => (float[8, 64] y) {
      go = Constant <value: tensor = bool {1}> ()
      zero = Constant <value: tensor = float {0}> ()
      y = Loop (n, go, x) <body = b (int64 i, bool c, float[8, 64] s)
        => (bool more, float[8, 64] t) { more = Identity (c)
          total = ReduceSum <keepdims = 0> (s) up = Less (total, zero)
          t = If (up) <then_branch = d () => (float[8, 64] o) { o = Sub (x, s) },
                      else_branch = e () => (float[8, 64] v) { v = MatMul (s, w) }> }>
    }""", {"n": np.int64(3)}),
    "scan": ("""(float[8] s0, float[8, 8, 64] x) => (float[8] last, float[8, 8, 64] y) {
      last, y = Scan <num_scan_inputs = 1, body = b (float[8] s, float[8, 64] a)
        => (float[8] t, float[8, 64] z) { r = MatMul (a, w) z = Relu (r)
          u = ReduceMean <axes = [1], keepdims = 0> (z) t = Add (s, u) }> (s0, x)
    }""", {}),
}  # fmt: skip


def looping(name: str) -> bytes:
    text, _ = LOOPS[name]
    model = parser.parse_model('<ir_version: 8, opset_import: ["": 17]> g ' + text)
    weights = np.random.default_rng(0).standard_normal((64, 64)).astype(np.float32) / 8
    model.graph.initializer.append(numpy_helper.from_array(weights, "w"))
    return model.SerializeToString()


@pytest.mark.parametrize("memory", ["value", "blob", "offset"])
@pytest.mark.parametrize("name", LOOPS)
def test_bodies_of_loops_run_with_the_same_bits(name: str, memory: primitive.Memory) -> None:
    cache, model = cache_of(), looping(name)
    runner = primitive.OperatorRunner(model, memory=memory, cache=cache)
    other = primitive.OperatorRunner(network(NAMES[0])[0].model, cache=cache)
    random = np.random.default_rng(1)
    with tightship.load(model) as planned:
        assert planned.plan.is_exact
        for _ in range(3):
            given = {
                key: random.standard_normal(shape).astype(np.float32)
                for key, (_, shape) in planned.input_types.items()
                if shape
            } | LOOPS[name][1]
            wanted, found = planned.run(given), runner.run(given)
            for key, value in wanted.items():
                np.testing.assert_array_equal(found[key], value)
            other.run(network(NAMES[0])[0].feeds)
    assert cache.pools.statistics().reserved_count == 0


def test_a_stop_flag_ends_a_loop() -> None:
    runner = primitive.OperatorRunner(looping("counted"), cache=cache_of())
    given = {"n": np.int64(1 << 40), "x": np.ones((8, 64), np.float32)}
    with pytest.raises(DeadlineError):
        runner.run(given, timeout_s=0.2)
    assert runner.cache.pools.statistics().reserved_count == 0
    assert runner.run({**given, "n": np.int64(2)})["y"].shape == (8, 64)


def test_bad_arguments_are_named() -> None:
    case, _ = network(NAMES[0])
    with pytest.raises(InputError, match="`memory` is 'arena'; give one of value, blob, offset"):
        primitive.OperatorRunner(case.model, memory="arena")  # type: ignore[arg-type]
    runner = primitive.OperatorRunner(case.model, cache=cache_of())
    with pytest.raises(InputError, match="nput"):
        runner.run({})
    net = Net()
    x = net.normal("x", 4)
    net.output(net("NonZero", x))
    with pytest.raises(InputError, match="runs in Python"):
        primitive.OperatorRunner(net.case().model)


@pytest.mark.parametrize(("value", "code"), [("2MiB", 0), ("0", 0), ("much", 1)])
def test_the_environment_sets_the_budget_of_the_process(value: str, code: int) -> None:
    program = "from tightship import primitive; print(primitive.process_cache().pools.budget_bytes)"
    done = subprocess.run(
        [sys.executable, "-c", program],
        env={BUDGET: value},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == code
    assert done.stdout.strip() == {"2MiB": str(2 << 20), "0": "0"}.get(value, "")
    assert BUDGET in done.stderr or not code
