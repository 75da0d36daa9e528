"""Operators that run graphs, against onnxruntime and against what the standard says."""

import tracemalloc
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import onnxruntime
import pytest
from hypothesis import given
from hypothesis import strategies as st
from onnx import parser

import tightship
from tightship._core import StopFlag
from tightship.errors import DeadlineError, GraphError, StoppedError

HEADER = '<ir_version: 9, opset_import: ["": 20]> g '

LOOP = """(int64 n, bool start, float[2,3] x, float limit) => (float[2,3] y, float[M,2,3] all) {
  y, all = Loop (n, start, x) <body = iteration (int64 i, bool c, float[2,3] s)
    => (bool more, float[2,3] next, float[2,3] kept) {
      one = Constant <value: tensor = float {1}> ()
      next = Add (s, one)
      total = ReduceMax <keepdims = 0> (next)
      more = Less (total, limit)
      kept = Neg (next)
    }>
}"""

SCAN = """(float[2] first, float[3,4] x, float[4,3] z) => (float[2] last, float[A,B] sums) {
  last, sums = Scan <num_scan_inputs = 2, scan_input_axes = [@AXIS, 0],
    scan_input_directions = [@BACK, @BACK], scan_output_axes = [@OUT],
    scan_output_directions = [@REV],
    body = iteration (float[2] s, float[3] a, float[3] b) => (float[2] t, float[3] sum) {
      one = Constant <value: tensor = float {1}> ()
      t = Add (s, one)
      ab = Sub (a, b)
      zero = Constant <value: tensor = int64[1] {0}> ()
      sz = Gather (s, zero)
      sum = Mul (ab, sz)
    }> (first, x, z)
}"""


def ours(text: str, **inputs: Any) -> list[Any]:
    with tightship.load(parser.parse_model(text).SerializeToString()) as model:
        return list(model.run(inputs).values())


def assert_as_onnxruntime(text: str, **inputs: Any) -> None:
    proto = parser.parse_model(text)
    session = onnxruntime.InferenceSession(
        proto.SerializeToString(), providers=["CPUExecutionProvider"]
    )
    expected = session.run(None, inputs)
    for actual, wanted in zip(ours(text, **inputs), expected, strict=True):
        np.testing.assert_allclose(actual, wanted, rtol=1e-5, strict=True)


def floats(*lengths: int) -> np.ndarray:
    return np.random.default_rng(1).standard_normal(lengths).astype(np.float32)


@given(trips=st.integers(0, 6), limit=st.integers(0, 8), starts=st.booleans())
def test_a_loop_ends_by_count_or_condition_and_stacks_its_elements(
    trips: int, limit: int, starts: bool
) -> None:
    inputs = {"n": np.array(trips), "start": np.array(starts), "x": np.zeros((2, 3), np.float32)}
    assert_as_onnxruntime(HEADER + LOOP, **inputs, limit=np.array(limit, np.float32))


@given(limit=st.integers(1, 6))
def test_a_loop_without_a_count_ends_by_its_condition_alone(limit: int) -> None:
    text = HEADER + LOOP.replace("Loop (n,", 'Loop ("",').replace("int64 n, ", "")
    x = np.zeros((2, 3), np.float32)
    y, elements = ours(text, start=np.array(True), x=x, limit=np.array(limit, np.float32))
    np.testing.assert_array_equal(y, x + limit)
    assert elements.shape == (limit, 2, 3)


def test_a_loop_without_a_condition_ends_by_its_count_alone() -> None:
    text = HEADER + LOOP.replace("Loop (n, start,", 'Loop (n, "",').replace("bool start, ", "")
    x = np.zeros((2, 3), np.float32)
    y, _ = ours(text, n=np.array(5), x=x, limit=np.array(2, np.float32))
    np.testing.assert_array_equal(y, x + 5)


@given(
    axis=st.sampled_from([1, -1]),
    out=st.sampled_from([0, 1, -1]),
    backward=st.booleans(),
    reverses=st.booleans(),
)
def test_a_scan_walks_any_axis_in_either_direction(
    axis: int, out: int, backward: bool, reverses: bool
) -> None:
    text = SCAN.replace("@AXIS", str(axis)).replace("@OUT", str(out))
    text = text.replace("@BACK", str(int(backward))).replace("@REV", str(int(reverses)))
    assert_as_onnxruntime(HEADER + text, first=floats(2), x=floats(3, 4), z=floats(4, 3))


def test_the_first_scan_has_a_batch_and_lengths() -> None:
    text = """<ir_version: 3, opset_import: ["": 8]> g
    (int64[2] n, float[2,1] first, float[2,3,1] x) => (float[2,1] last, float[2,3,1] sums) {
      last, sums = Scan <num_scan_inputs = 1, directions = [1],
        body = iteration (float[1] s, float[1] a) => (float[1] t, float[1] u) {
          t = Add (s, a) u = Identity (t) }> (n, first, x)
    }"""
    x = np.arange(6, dtype=np.float32).reshape(2, 3, 1)
    last, sums = ours(text, n=np.array([3, 2]), first=np.zeros((2, 1), np.float32), x=x)
    np.testing.assert_array_equal(last, [[3], [7]])
    np.testing.assert_array_equal(sums, [[[2], [3], [3]], [[4], [7], [0]]])


@pytest.mark.parametrize("taken", [True, False])
@pytest.mark.parametrize("inner", [True, False])
def test_branches_read_values_of_every_graph_around_them(taken: bool, inner: bool) -> None:
    text = """(bool p, bool q, float[3] x) => (float[3] y) {
      a = Abs (x)
      y = If (p) <then_branch = t () => (float[3] r) {
          b = Neg (a)
          r = If (q) <then_branch = tt () => (float[3] u) { u = Add (a, b) },
                      else_branch = te () => (float[3] v) { v = Mul (x, b) }>
        }, else_branch = e () => (float[3] w) { w = Sub (x, a) }>
    }"""
    assert_as_onnxruntime(HEADER + text, p=np.array(taken), q=np.array(inner), x=floats(3))


def test_a_sequence_is_mapped_element_by_element() -> None:
    text = """(seq(float[N]) s, float k) => (seq(float[N]) t) {
      t = SequenceMap <body = f (float[N] a, float b) => (float[N] c) { c = Mul (a, b) }> (s, k)
    }"""
    elements = [floats(2), floats(5)]
    (mapped,) = ours(HEADER + text, s=elements, k=np.array(3, np.float32))
    for actual, element in zip(mapped, elements, strict=True):
        np.testing.assert_allclose(actual, element * 3)
    assert ours(HEADER + text, s=[], k=np.array(3, np.float32)) == [[]]


def test_elements_of_different_shapes_cannot_be_stacked() -> None:
    text = """(int64 n) => (float[A,B] y) {
      start = Constant <value: tensor = bool {1}> ()
      y = Loop (n, start) <body = iteration (int64 i, bool c) => (bool more, float[N] e) {
        more = Identity (c)
        one = Constant <value: tensor = int64[1] {1}> ()
        length = Reshape (i, one)
        e = ConstantOfShape (length)
      }>
    }"""
    with pytest.raises(GraphError, match=r"the shapes \[0\] and \[1\] in different iterations"):
        ours(HEADER + text, n=np.array(2))


def test_a_body_holds_only_values_that_are_still_read() -> None:
    names = [f"v{index}" for index in range(20)]
    nodes = "\n".join(f"{b} = Neg ({a})" for a, b in zip(["x", *names], names, strict=False))
    text = f"""(bool p, float[1000000] x) => (float[1000000] y) {{
      y = If (p) <then_branch = t () => (float[1000000] r) {{ {nodes} r = Neg (v19) }},
                  else_branch = e () => (float[1000000] w) {{ w = Neg (x) }}>
    }}"""
    inputs = {"p": np.array(True), "x": np.zeros(1_000_000, np.float32)}
    model = tightship.load(parser.parse_model(HEADER + text).SerializeToString())
    with model:
        tracemalloc.start()
        model.run(inputs)
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
    assert peak < 4 * 4_000_000


PER_ROW = """(bool one, bool deep, float[N,3] x) => (float[M,K] y) {
  y = If (one) <
    then_branch = l () => (float[P,3] a) {
      first = Constant <value: tensor = int64[1] {0}> ()
      s = If (deep) <
        then_branch = row () => (float[3] r) { r = Squeeze (x, first) },
        else_branch = sum () => (float[3] q) { q = ReduceSum <keepdims = 0> (x, first) }
      >
      a = Unsqueeze (s, first)
    },
    else_branch = r () => (float[Q,3] b) { b = Neg (x) }
  >
}"""


@pytest.mark.parametrize("rows", [1, 2, 5])
@pytest.mark.parametrize(("one", "deep"), [(False, True), (False, False), (True, False)])
def test_a_branch_that_the_shapes_do_not_fit_need_not_be_taken(
    rows: int, *, one: bool, deep: bool
) -> None:
    feeds = {"one": np.array(one), "deep": np.array(deep), "x": floats(rows, 3)}
    proto = parser.parse_model(HEADER + PER_ROW).SerializeToString()
    (wanted,) = onnxruntime.InferenceSession(proto).run(None, feeds)
    with tightship.load(proto, shapes={"x": (3, 3)}) as model:  # a run of other shapes, then these
        for _ in range(2):
            np.testing.assert_allclose(model.run(feeds)["y"], wanted, rtol=1e-6, strict=True)
            model.run({**feeds, "one": np.array(False), "x": floats(3, 3)})


def test_a_branch_that_the_shapes_do_not_fit_fails_when_it_is_taken() -> None:
    taken = {"one": np.array(True), "deep": np.array(True)}
    proto = parser.parse_model(HEADER + PER_ROW).SerializeToString()
    with tightship.load(proto, shapes={"x": (2, 3)}) as model:
        with pytest.raises(GraphError, match=r"`s` \(If\) .*`then_branch`.* `r` \(Squeeze\)"):
            model.run({**taken, "x": floats(2, 3)})
        row = floats(1, 3)
        np.testing.assert_array_equal(model.run({**taken, "x": row})["y"], row)


ENDLESS = """(int64 n) => (int64 y) {
  start = Constant <value: tensor = int64 {0}> ()
  y = Loop (n, "", start) <body = iteration (int64 i, bool c, int64 s) => (bool more, int64 next) {
    more = Identity (c)
    next = Add (s, i)
  }>
}"""


def test_a_loop_without_end_ends_at_the_deadline_of_its_run() -> None:
    with tightship.load(parser.parse_model(HEADER + ENDLESS).SerializeToString()) as model:
        with pytest.raises(DeadlineError):
            model.run({"n": np.array(1 << 40)}, timeout_s=0.1)
        assert model.run({"n": np.array(4)})["y"] == 6


def test_a_loop_without_end_ends_when_its_run_is_stopped() -> None:
    stop = StopFlag()
    with (
        tightship.load(parser.parse_model(HEADER + ENDLESS).SerializeToString()) as model,
        ThreadPoolExecutor(1) as threads,
    ):
        run = threads.submit(model.run, {"n": np.array(1 << 40)}, stop=stop)
        stop.set()
        with pytest.raises(StoppedError):
            run.result(60)
