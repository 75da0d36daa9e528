"""Runs of programs whose shapes follow from data, in the core and in Python."""

import gc

import numpy as np
import pytest

from tests.engine.run.programs import loaded
from tests.zoo.networks import DYNAMIC, network
from tightship._core import SizedOperator, StopFlag
from tightship.engine.arenas.model_pools import ModelPools
from tightship.engine.run import python_run
from tightship.engine.run.executable import PythonStep
from tightship.errors import DeadlineError, OutOfMemoryError, StoppedError

FOUND = """g (float[40, 8] x, int64[1] k) => (float[1, m] y, int64[m] z, float[p] s) {
    a = Greater (x, zero)
    b = NonZero (a)
    t = Transpose <perm = [1, 0]> (b)
    v = GatherND (x, t)
    y = Unsqueeze (v, axis)
    r = Mul (b, two)
    f = ReduceSum <keepdims = 0> (r, axis)
    z = Add (f, k)
    w = Exp (v)
    s = Softmax <axis = 0> (w)
}"""
CONSTANTS = {"zero": np.float32(0), "axis": np.array([0]), "two": np.array(2)}


def found(run, rows, **limits):
    x = np.random.default_rng(rows).standard_normal((40, 8)).astype(np.float32)
    x[rows:] = 0
    return x, run({"x": x, "k": np.array([3])}, **limits)


def expected(x):
    places, values = np.argwhere(x > 0), x[x > 0]
    powers = np.exp(np.exp(values) - np.exp(values).max(initial=0))
    return values[None], 2 * places.sum(1) + 3, powers / powers.sum()


def steps_in_python(monkeypatch):
    """The operators of steps that Python runs from now on."""
    seen = []
    kept = python_run.PythonRun.step

    def step(self, segment):
        seen.append(segment.step.operator)
        kept(self, segment)

    monkeypatch.setattr(python_run.PythonRun, "step", step)
    return seen


@pytest.mark.parametrize("workers", [1, 2])
def test_the_core_runs_every_step_for_any_number_of_elements(monkeypatch, workers):
    run, _ = loaded(FOUND, **CONSTANTS)
    seen = steps_in_python(monkeypatch)
    for rows in (5, 0, 1, 40, 5):
        x, results = found(run, rows, workers=workers)
        for name, wanted in zip("yzs", expected(x), strict=True):
            np.testing.assert_allclose(results[name], wanted, rtol=1e-5)
    assert seen == []


def test_without_the_core_python_runs_every_step(monkeypatch):
    run, _ = loaded(FOUND, ("native",), **CONSTANTS)
    seen = steps_in_python(monkeypatch)
    x, results = found(run, 5)
    np.testing.assert_allclose(results["s"], expected(x)[2], rtol=1e-5)
    assert len(seen) >= 8


class KeptPools(ModelPools):
    """Pools that keep the memory of each run."""

    def __init__(self, budget_bytes, limit_bytes):
        super().__init__(budget_bytes, limit_bytes)
        self.memories = []

    def begin(self):
        self.memories.append(super().begin())
        return self.memories[-1]


def test_runs_of_many_shapes_leave_no_byte_behind():
    run, _ = loaded(FOUND, **CONSTANTS)
    pools = KeptPools(0, 10**7)
    for rows in range(40):
        found(run, rows, dynamic=pools)
    run.objects = None
    gc.collect()
    assert [each.live_bytes for each in pools.memories] == [0] * 40
    assert all(each.peak_bytes > 0 for each in pools.memories)


def test_results_outlive_the_next_run():
    run, _ = loaded(FOUND, **CONSTANTS)
    x, results = found(run, 6)
    found(run, 40)
    for name, wanted in zip("yzs", expected(x), strict=True):
        np.testing.assert_allclose(results[name], wanted, rtol=1e-5)


def test_what_the_core_allocates_is_bounded():
    run, _ = loaded(FOUND, **CONSTANTS)
    with pytest.raises(OutOfMemoryError, match="dynamic_memory"):
        found(run, 40, dynamic=ModelPools(0, 10**3))
    x, results = found(run, 3, dynamic=ModelPools(0, 10**4))
    np.testing.assert_array_equal(results["y"], x[x > 0][None])


def test_limits_end_a_run_in_the_core():
    run, _ = loaded(FOUND, **CONSTANTS)
    stop = StopFlag()
    stop.set()
    with pytest.raises(StoppedError):
        found(run, 5, stop=stop)
    with pytest.raises(DeadlineError):
        found(run, 5, deadline_ns=1)
    found(run, 5)


MIXED = """g (float[4] x) => (float[m] y) {
    a = NonZero (x)
    b = Flatten <axis = 0> (a)
    c = Squeeze (b, axis)
    d = Gather (x, c)
    e = Compress (d, few)
    f = Neg (e)
    q = SequenceConstruct (f, e)
    g = SequenceAt (q, zero)
    y = Mul (g, g)
}"""


def test_python_steps_and_sequences_stand_between_steps_of_the_core(monkeypatch):
    run, _ = loaded(MIXED, axis=np.array([0]), few=np.array([True, False, True]), zero=np.array(0))
    seen = steps_in_python(monkeypatch)
    assert run({"x": np.array([0, 2, 3, 4], np.float32)})["y"].tolist() == [4, 16]
    assert seen == ["Compress", "SequenceConstruct", "SequenceAt"]
    assert set(run.objects) == {"y"}


@pytest.mark.parametrize("name", ["detector of two stages", "detector with masks"])
def test_detectors_run_in_the_core_alone(monkeypatch, name):
    assert name in DYNAMIC
    import tightship

    case, wanted = network(name)
    with tightship.load(case.model) as model:
        seen = steps_in_python(monkeypatch)
        results = model(**case.feeds)
    assert seen == []
    for result, value in zip(results, wanted.values(), strict=True):
        np.testing.assert_allclose(result, value, rtol=1e-3, atol=1e-3)


def test_an_operator_that_the_core_leaves_has_the_error_of_python():
    run, _ = loaded(
        """g (float[3] x, int64[2] k) => (int64[p, 2] y) {
        a = NonZero (x) t = Transpose (a) b = Gather (t, k) y = Transpose (b) }""",
    )
    x = np.array([4, 0, 5], np.float32)
    assert run({"x": x, "k": np.array([-1, 0])})["y"].tolist() == [[2, 0]]
    with pytest.raises(Exception, match=r"out of bounds"):
        run({"x": x, "k": np.array([3, 0])})
    assert run({"x": x, "k": np.array([1, 0])})["y"].tolist() == [[2, 0]]
    assert all(isinstance(each, PythonStep) for each in run.executable.segments)


def test_an_operator_without_its_settings_is_refused():
    with pytest.raises(ValueError, match="lacks settings"):
        SizedOperator.of("Gather")
    assert SizedOperator.of("Unheard") is None
