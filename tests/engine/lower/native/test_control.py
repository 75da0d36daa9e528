"""Native control flow against onnxruntime, and against bodies in NumPy."""

import json
import subprocess
import sys
import tracemalloc
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import numpy_helper, parser

import tightship
from tests.models import gated_scan
from tightship import DeadlineError, InputError, StoppedError
from tightship._core import StopFlag

HEADER = '<ir_version: 9, opset_import: ["": 20]> g '

SLICED = """(float[2] first, float[3,4,2] x, float[2,4] z) => (float[2] last, float[A,B,C] sums) {
  last, sums = Scan <num_scan_inputs = 2, scan_input_axes = [1, -1],
    scan_input_directions = [@IN, 1], scan_output_axes = [@AXIS], scan_output_directions = [@OUT],
    body = b (float[2] s, float[3,2] a, float[2] c) => (float[2] t, float[3,2] sum) {
      t = Add (s, c) sum = Sub (a, s) }> (first, x, z)
}"""

COUNTED = """(int64 n, bool go, float[2,3] x, float limit) => (float[2,3] y, float[2,3] same) {
  y, same = Loop (n, go, x, x) <body = b (int64 i, bool c, float[2,3] s, float[2,3] k)
    => (bool more, float[2,3] next, float[2,3] kept) {
      f = Cast <to = 1> (i) sf = Add (s, f) next = Add (sf, k)
      total = ReduceMax <keepdims = 0> (next) more = Less (total, limit) kept = Identity (k) }>
}"""

STACKED = """(float[3] x) => (float[3] last, float[5,3] a, float[5,3] b, int64[5] numbers) {
  n = Constant <value: tensor = int64 {5}> ()
  last, a, b, numbers = Loop (n, "", x) <body = b (int64 i, bool c, float[3] s)
    => (bool more, float[3] t, float[3] t2, float[3] given, int64 number) {
      more = Identity (c) t = Add (s, x) t2 = Identity (t) given = Identity (s)
      number = Mul (i, i) }>
}"""

NESTED = """(int64 n, float[4] x) => (float[4] y) {
  go = Constant <value: tensor = bool {1}> ()
  zero = Constant <value: tensor = float {0}> ()
  y = Loop (n, go, x) <body = b (int64 i, bool c, float[4] s) => (bool more, float[4] t) {
      more = Identity (c)
      total = ReduceSum <keepdims = 0> (s) up = Less (total, zero)
      r = If (up) <then_branch = d () => (float[4] o) { o = Sub (x, s) },
                   else_branch = e () => (float[4] v) { m = Mul (s, x) v = Sub (m, x) }>
      two = Constant <value: tensor = int64 {2}> ()
      t = Loop (two, go, r) <body = inner (int64 j, bool k, float[4] p) => (bool l, float[4] q) {
          l = Identity (k) q = Tanh (p) }> }>
}"""


def model_of(text: str, **weights: np.ndarray[Any, Any]) -> bytes:
    proto = parser.parse_model(HEADER + text)
    for name, array in weights.items():
        proto.graph.initializer.append(numpy_helper.from_array(array, name))
    return proto.SerializeToString()


def floats(*shape: int, seed: int = 1) -> np.ndarray[Any, np.dtype[np.float32]]:
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def gated() -> bytes:
    return gated_scan().SerializeToString()


def expected(model: bytes, inputs: dict[str, Any]) -> list[Any]:
    session = onnxruntime.InferenceSession(model, providers=["CPUExecutionProvider"])
    return list(session.run(None, inputs))


def assert_close(actual: dict[str, Any], wanted: list[Any]) -> None:
    for array, other in zip(actual.values(), wanted, strict=True):
        np.testing.assert_allclose(array, other, rtol=1e-4, atol=1e-5, strict=True)


def assert_native(model: tightship.Model) -> None:
    assert not [step for step in model.plan.steps if step.dynamic_reason]
    assert {step.kernel for step in model.plan.steps} <= {"native", "onednn"}


def check(model: bytes, **inputs: Any) -> None:
    """Run a model twice, natively and in NumPy, and compare with onnxruntime."""
    wanted = expected(model, inputs)
    with tightship.load(model) as ours:
        assert_native(ours)
        for _ in range(2):
            assert_close(ours.run(inputs), wanted)
    with tightship.load(model, without=["native"]) as other:
        assert_close(other.run(inputs), wanted)


def test_a_scan_with_products_is_as_in_onnxruntime_and_allocates_nothing() -> None:
    inputs = {"h": floats(4, 16), "x": floats(6, 4, 16)}
    check(gated(), **inputs)
    with tightship.load(gated()) as model:
        results = model.run(inputs)
        tracemalloc.start()
        model.run(inputs, outputs=results)
        _, most = tracemalloc.get_traced_memory()
        tracemalloc.stop()
    assert most < 16 << 10


@pytest.mark.parametrize("backward", [0, 1])
@pytest.mark.parametrize("axis", [0, 1, 2, -1])
@pytest.mark.parametrize("reverses", [0, 1])
def test_slices_lie_along_any_axis_from_either_end(backward: int, axis: int, reverses: int) -> None:
    text = SLICED.replace("@IN", str(backward)).replace("@AXIS", str(axis))
    check(model_of(text.replace("@OUT", str(reverses))),
          first=floats(2), x=floats(3, 4, 2), z=floats(2, 4))  # fmt: skip


@settings(max_examples=20, deadline=None)
@given(trips=st.integers(-1, 6), limit=st.integers(-2, 30), begins=st.booleans())
def test_a_loop_ends_by_its_count_or_its_condition(trips: int, limit: int, begins: bool) -> None:
    inputs = {"n": np.array(trips), "go": np.array(begins), "x": floats(2, 3)}
    check(model_of(COUNTED), **inputs, limit=np.array(limit, np.float32))


@pytest.mark.parametrize("trips", [0, 1, 2, 5])
def test_a_counted_loop_ends_in_its_result_after_any_number(trips: int) -> None:
    text = COUNTED.replace("Loop (n, go,", 'Loop (n, "",').replace("bool go, ", "")
    x = floats(2, 3)
    with tightship.load(model_of(text)) as model:
        assert_native(model)
        results = model.run({"n": np.array(trips), "x": x, "limit": np.array(0, np.float32)})
    assert_close(results, [x * (1 + trips) + trips * (trips - 1) / 2, x])


def test_elements_are_stacked_whatever_else_their_value_is() -> None:
    check(model_of(STACKED), x=floats(3))


def test_a_state_that_is_not_read_is_carried_all_the_same() -> None:
    text = STACKED.replace("float[3] last, ", "").replace("last, a, b", '"", a, b')
    x = floats(3)
    with tightship.load(model_of(text)) as model:
        assert_native(model)
        sums = np.arange(2, 7, dtype=np.float32)[:, None] * x
        assert_close(model.run({"x": x}), [sums, sums - x, np.arange(5) ** 2])


@pytest.mark.parametrize("trips", [0, 3])
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_control_flow_nests_and_captures_change_between_runs(trips: int, seed: int) -> None:
    check(model_of(NESTED), n=np.array(trips), x=floats(4, seed=seed))
    with tightship.load(model_of(NESTED)) as model:
        for other in range(3):
            inputs = {"n": np.array(2), "x": floats(4, seed=other)}
            assert_close(model.run(inputs), expected(model_of(NESTED), inputs))


@pytest.mark.parametrize("taken", [True, False])
def test_branches_may_return_captures_constants_and_the_same_value_twice(taken: bool) -> None:
    text = """(bool p, float[2] x) => (float[2] y, float[2] z) {
      a = Abs (x)
      y, z = If (p) <
        then_branch = t () => (float[2] r, float[2] q) { r = Identity (a) q = Identity (a) },
        else_branch = e () => (float[2] c, float[2] d) {
          c = Constant <value: tensor = float[2] {1, 2}> () d = Identity (x) }>
    }"""
    check(model_of(text), p=np.array(taken), x=floats(2))


def test_other_lengths_run_the_same_bodies() -> None:
    model = gated_scan("N").SerializeToString()
    with tightship.load(model, shapes={"x": (6, 4, 16)}) as ours:
        for length in (6, 3, 9, 6):
            inputs = {"h": floats(4, 16), "x": floats(length, 4, 16)}
            assert_close(ours.run(inputs), expected(model, inputs))
        assert_native(ours)


@pytest.mark.parametrize("kind", ["strings", "shape"])
def test_a_body_without_native_kernels_runs_as_before(kind: str) -> None:
    if kind == "shape":
        text = """(int64 n, float[A] x) => (float[B] y) {
          go = Constant <value: tensor = bool {1}> ()
          y = Loop (n, go, x) <body = b (int64 i, bool c, float[P] s) => (bool more, float[Q] t) {
              more = Identity (c) t = Concat <axis = 0> (s, s) }>
        }"""
        inputs = {"n": np.array(3), "x": floats(2)}
        wanted = [np.tile(inputs["x"], 8)]
    else:
        text = """(bool p, string[2] x) => (string[2] y) {
          y = If (p) <then_branch = t () => (string[2] r) { r = Identity (x) },
                      else_branch = e () => (string[2] s) { s = StringConcat (x, x) }>
        }"""
        inputs = {"p": np.array(False), "x": np.array(["a", "b"], object)}
        wanted = [np.array(["aa", "bb"], object)]
    with tightship.load(model_of(text), shapes={"x": (2,)}) as model:
        (actual,) = model.run(inputs).values()
        assert [step.dynamic_reason for step in model.plan.steps if step.dynamic_reason]
    np.testing.assert_array_equal(actual, wanted[0])


def test_an_invalid_index_in_a_body_names_its_node() -> None:
    text = """(int64 n, float[3] x) => (float[1] y) {
      start = Constant <value: tensor = float[1] {0}> ()
      y = Loop (n, "", start) <body = b (int64 i, bool c, float[1] s) => (bool d, float[1] t) {
          d = Identity (c) one = Constant <value: tensor = int64[1] {1}> ()
          at = Reshape (i, one) t = Gather (x, at) }>
    }"""
    with tightship.load(model_of(text)) as model:
        with pytest.raises(InputError, match="`Gather_t`"):
            model.run({"n": np.array(5), "x": floats(3)})
        np.testing.assert_array_equal(model.run({"n": np.array(3), "x": floats(3)})["y"],
                                      floats(3)[2:])  # fmt: skip


def test_threads_run_one_model_at_once() -> None:
    with tightship.load(gated()) as model, ThreadPoolExecutor(4) as threads:
        feeds = [{"h": floats(4, 16, seed=i), "x": floats(6, 4, 16, seed=i)} for i in range(16)]
        found = list(threads.map(model.run, feeds))
    for inputs, results in zip(feeds, found, strict=True):
        assert_close(results, expected(gated(), inputs))


def two_loops() -> bytes:
    """Return a model of two loops that do not wait for each other."""
    body = """<body = b@ (int64 i@, bool c@, float[8] s@) => (bool d@, float[8] t@) {
      d@ = Identity (c@) p@ = Tanh (s@) t@ = Neg (p@) }>"""
    text = f"""(int64 n, float[8] x) => (float[8] y) {{
      go = Constant <value: tensor = bool {{1}}> ()
      a = Abs (x)
      u = Loop (n, go, x) {body.replace("@", "1")}
      v = Loop (n, go, a) {body.replace("@", "2")}
      y = Add (u, v)
    }}"""
    return model_of(text)


def test_workers_run_loops_at_once_and_stop_in_them() -> None:
    endless = {"n": np.array(1 << 40), "x": floats(8)}
    with tightship.load(two_loops(), workers=2) as model:
        inputs = {"n": np.array(7), "x": floats(8)}
        for _ in range(20):
            assert_close(model.run(inputs), expected(two_loops(), inputs))
        with pytest.raises(DeadlineError):
            model.run(endless, timeout_s=0.1)
        stop = StopFlag()
        with ThreadPoolExecutor(1) as threads:
            run = threads.submit(model.run, endless, stop=stop)
            stop.set()
            with pytest.raises(StoppedError):
                run.result(60)
        assert_close(model.run(inputs), expected(two_loops(), inputs))


STOPPED = """
import sys, threading
from concurrent.futures import ThreadPoolExecutor
import numpy as np
import tightship
from tightship._core import StopFlag

with tightship.load(sys.argv[1]) as model, ThreadPoolExecutor(1) as threads:
    for _ in range(8):
        model.run({"n": np.array(1), "x": np.ones(8, np.float32)})
    assert model.plan.is_exact and not model.plan.is_constant_time
    stop, begun = StopFlag(), threading.Event()

    def run():
        begun.set()
        return model.run({"n": np.array(1 << 40), "x": np.ones(8, np.float32)}, stop=stop)

    running = threads.submit(run)
    begun.wait()
    stop.set()
    try:
        running.result(60)
    except tightship.StoppedError:
        print("stopped")
"""


def test_a_loop_that_was_short_can_be_stopped_when_it_is_long(tmp_path: Path) -> None:
    path = tmp_path / "loops.onnx"
    path.write_bytes(two_loops())
    done = subprocess.run(  # a run that kept the GIL would end no test, a process of its own ends
        [sys.executable, "-c", STOPPED, str(path)],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.stdout == "stopped\n", done.stderr


def test_a_prepared_model_runs_in_another_process(tmp_path: Path) -> None:
    for name, model, inputs in (
        ("gated", gated(), {"h": floats(4, 16), "x": floats(6, 4, 16)}),
        ("nested", model_of(NESTED), {"n": np.array(3), "x": floats(4)}),
    ):
        path = tmp_path / f"{name}.tship"
        tightship.prepare(model, path)
        np.savez(tmp_path / "inputs.npz", **inputs)
        script = """import sys, numpy, tightship
path, folder = sys.argv[1:]
with numpy.load(folder + "/inputs.npz") as inputs, tightship.load(path) as model:
    results = model.run(dict(inputs))
    assert "onnx" not in sys.modules
numpy.savez(folder + "/outputs.npz", **results)"""
        subprocess.run([sys.executable, "-c", script, path, tmp_path], check=True)
        with np.load(tmp_path / "outputs.npz") as results:
            assert_close(dict(results), expected(model, inputs))


def test_a_process_with_a_loop_stays_inside_its_plan(tmp_path: Path) -> None:
    script = """import json, sys, numpy, tightship
def high():
    with open("/proc/self/status") as lines:
        return next(int(x.split()[1]) << 10 for x in lines if x.startswith("VmHWM"))
before = high()
with tightship.load(sys.argv[1]) as model:
    inputs = {name: numpy.zeros(shape, dtype.numpy)
              for name, (dtype, shape) in model.input_types.items()}
    for _ in range(3):
        model.run(inputs)
    print(json.dumps([high() - before, model.plan.peak_bytes, model.plan.arena_bytes]))"""
    path = tmp_path / "gated.onnx"
    path.write_bytes(gated_scan(4, 512, 512).SerializeToString())
    done = subprocess.run([sys.executable, "-c", script, path], capture_output=True, check=True)
    gained, planned, arena = json.loads(done.stdout)
    assert arena > 4 << 20
    assert gained <= planned
