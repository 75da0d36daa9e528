"""Elementwise kernels against NumPy's, over types, shapes, strides and special values."""

import math
from typing import Any

import hypothesis.extra.numpy as hnp
import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.engine.graphs import graph_of, implementations, run
from tests.engine.kernels.typed import Typed, typed
from tests.engine.native_tier import run_natively
from tests.engine.test_native import run_kernel
from tightship import _core
from tightship._core import NativeKernel

ONEDNN = pytest.mark.skipif(not _core.HAS_ONEDNN, reason="strides come with oneDNN's layouts")
INTEGERS = [f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)]
FLOATS = ["float16", "float32", "float64"]
THREADS = st.integers(1, 3)
SPECIAL = (0.0, -0.0, 1.0, -1.0, 0.5, -2.5, 3.5, 1e-40, -65504.0, math.inf, -math.inf, math.nan)
PAIRS = hnp.mutually_broadcastable_shapes(num_shapes=2, max_dims=4, min_side=0, max_side=5)
EXACT = (*("Add", "Sub", "Mul", "Div", "Min", "Max", "Mod", "Equal", "Less", "LessOrEqual"),
         *("Greater", "GreaterOrEqual"))  # fmt: skip


def results(case: Typed, threads: int = 1) -> Any:
    found = run_natively(case.node, case.inputs, case.like, threads)
    assert found is not None, f"no native kernel covers {case.node}"
    return found[0]


def assert_equal(case: Typed, threads: int = 1) -> None:
    """Native and NumPy agree on every element; NaN is one value and 0 has one sign."""
    found, wanted = results(case, threads), case.run()[0]
    assert (found.dtype, found.shape) == (wanted.dtype, wanted.shape)
    if found.dtype.name == "bfloat16":
        found, wanted = found.astype(np.float32), wanted.astype(np.float32)
    np.testing.assert_array_equal(found, wanted)


def extremes(dtype: str) -> Any:
    limits = np.iinfo(dtype)
    return np.array([limits.min, limits.max, 0, 1, 3, 7, limits.max // 2, limits.min + 1], dtype)


def elements_of(dtype: str) -> Any:
    if dtype == "bool":
        return st.booleans()
    if "int" in dtype:
        return st.sampled_from(extremes(dtype).tolist())
    return st.sampled_from(SPECIAL)


@pytest.mark.parametrize("name", EXACT)
@given(PAIRS, st.sampled_from([*INTEGERS, *FLOATS]), THREADS, st.data())
def test_two_operands_broadcast_and_compute_as_numpys_do(name, shapes, dtype, threads, data):
    attributes = {"fmod": 1} if name == "Mod" and dtype in FLOATS else {}
    x, y = (
        data.draw(hnp.arrays(dtype, s, elements=elements_of(dtype))) for s in shapes.input_shapes
    )
    kind = np.bool_ if name in EXACT[7:] else dtype
    like = np.zeros(shapes.result_shape, kind)
    assert_equal(typed(name, x, y, like=[like], **attributes), threads)


@pytest.mark.parametrize("dtype", INTEGERS)
def test_every_pair_of_extreme_integers_divides_without_a_fault(dtype):
    x = extremes(dtype)
    x = np.append(x, np.array(-1).astype(dtype))
    for name, attributes in (("Div", {}), ("Mod", {}), ("Mod", {"fmod": 1})):
        assert_equal(typed(name, x[:, None], x[None, :], **attributes))


@pytest.mark.parametrize("name", ["BitwiseAnd", "BitwiseOr", "BitwiseXor"])
@pytest.mark.parametrize("dtype", INTEGERS)
def test_bits_are_combined(name, dtype):
    x = extremes(dtype)
    assert_equal(typed(name, x[:, None], x))
    assert_equal(typed("BitwiseNot", x))


@pytest.mark.parametrize("dtype", [d for d in INTEGERS if d[0] == "u"])
@pytest.mark.parametrize("direction", ["LEFT", "RIGHT"])
def test_bits_are_shifted_even_out_of_the_element(dtype, direction):
    x, by = extremes(dtype), np.array([0, 1, 7, 8, 15, 31, 63, 64, 200], dtype)
    assert_equal(typed("BitShift", x[:, None], by, direction=direction))


@pytest.mark.parametrize("name", ["And", "Or", "Xor", "Equal"])
def test_truth_tables(name):
    x = np.array([False, True])
    assert_equal(typed(name, x[:, None], x))
    assert_equal(typed("Not", x))


@given(st.data())
def test_any_number_of_operands_is_folded(data):
    count = data.draw(st.integers(1, 8))
    name = data.draw(st.sampled_from(["Sum", "Min", "Max", "Mean"]))
    shapes = data.draw(hnp.mutually_broadcastable_shapes(num_shapes=count, max_dims=3, max_side=4))
    arrays = [np.arange(math.prod(s), dtype=np.float32).reshape(s) for s in shapes.input_shapes]
    assert_equal(typed(name, *arrays), data.draw(THREADS))


SIGNED = [dtype for dtype in INTEGERS if dtype[0] != "u"]


@pytest.mark.parametrize("name", ["Abs", "Neg", "Sign"])
@pytest.mark.parametrize("dtype", [*SIGNED, *FLOATS])
def test_signs_of_extreme_elements(name, dtype):
    x = np.array(SPECIAL, dtype) if dtype in FLOATS else extremes(dtype)
    assert_equal(typed(name, x))


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("name", ["Ceil", "Floor", "Round", "Reciprocal", "Sqrt", "IsNaN", "Relu"])
def test_exact_functions_of_special_elements(name, dtype):
    assert_equal(typed(name, np.array([*SPECIAL, 1.5, 2.5, -1.5], dtype)))


@pytest.mark.parametrize(("positive", "negative"), [(1, 1), (1, 0), (0, 1)])
@pytest.mark.parametrize("dtype", FLOATS)
def test_infinities_of_either_sign_are_found(dtype, positive, negative):
    x = np.array(SPECIAL, dtype)
    assert_equal(typed("IsInf", x, detect_positive=positive, detect_negative=negative))


THREE = hnp.mutually_broadcastable_shapes(num_shapes=3, max_dims=4, min_side=0, max_side=4)


@given(THREE, st.sampled_from(["?", "i1", "f2", "f4", "c8"]), THREADS)
def test_elements_of_any_size_are_chosen(shapes, dtype, threads):
    condition, x, y = ((np.arange(math.prod(s)) * 7 % 5).reshape(s) for s in shapes.input_shapes)
    assert_equal(typed("Where", condition > 1, x.astype(dtype), (y + 10).astype(dtype)), threads)


@pytest.mark.parametrize("dtype", [*INTEGERS, *FLOATS])
@pytest.mark.parametrize("absent", [(), (0,), (1,), (0, 1)])
def test_limits_that_only_the_run_knows_clip_and_the_upper_wins(dtype, absent):
    x = np.array(SPECIAL, dtype) if dtype in FLOATS else extremes(dtype)
    for low, high in ((1, 5), (5, 1)):
        limits = [np.array(v, dtype) for v in (low, high)]
        given_limits = [None if i in absent else v for i, v in enumerate(limits)]
        assert_equal(typed("Clip", x, *given_limits))


@pytest.mark.parametrize("target", ["bool", *INTEGERS, *FLOATS, "bfloat16"])
@pytest.mark.parametrize("source", ["bool", *INTEGERS, *FLOATS, "bfloat16"])
def test_casts_between_all_types_of_numbers(source, target):
    from onnx import helper

    source_type, target_type = (np.dtype(getattr(ml_dtypes, t, t)) for t in (source, target))
    numbers = np.linspace(0, 100, 1030) if "u" in target else np.linspace(-100, 100, 1030)
    if source_type.kind in "fV" and target_type.kind in "fV":
        numbers = np.append(numbers, (*SPECIAL, 65519.9, 65520.1, 1 + 2**-11, 6e-8, 2.9e-8))
    with np.errstate(over="ignore"):
        x = numbers.astype(source_type)[1:].reshape(1, -1)
    assert_equal(typed("Cast", x, to=helper.np_dtype_to_tensor_dtype(target_type)), 2)


@given(st.lists(st.floats(-7e4, 7e4) | st.floats(width=32), min_size=1))
def test_float64_is_rounded_once_to_float16(numbers):
    assert_equal(typed("Cast", np.array(numbers), to=10))


def test_what_no_integer_holds_becomes_the_lowest_one():
    x = np.array([math.nan, math.inf, -math.inf, 1e30], np.float32)
    assert results(typed("Cast", x, to=6)).tolist() == [-(2**31)] * 4
    assert results(typed("Cast", x, to=7)).tolist() == [-(2**63)] * 4


@ONEDNN
@pytest.mark.parametrize("text", ["Where (c, t, u)", "Erf (t)", "Sin (t)", "Max (t, u, t)"])
def test_a_transposed_operand_is_read_as_it_lies(text):
    graph = graph_of(
        "g (float[4, 6, 8] x, float[8, 6, 4] u) => (float[a, b, c] y) "
        f"{{ t = Transpose <perm = [2, 1, 0]> (x) y = {text} }}",
        c=np.arange(192).reshape(8, 6, 4) % 3 == 0,
    )
    assert "Reorder" not in {operator for operator, _, _ in implementations(graph)}
    assert "numpy" not in {kernel for _, kernel, _ in implementations(graph)}
    found, wanted = run(graph), run(graph, ("native", "onednn"))
    np.testing.assert_allclose(found["y"], wanted["y"], rtol=1e-6)


SLOPED = ("LeakyRelu", "Elu", "Celu", "ThresholdedRelu", "Swish")
SMOOTH = (
    *("Exp", "Log", "Erf", "Sin", "Cos", "Tan", "Tanh", "Sigmoid", "Softplus", "Softsign"),
    *("HardSwish", "Mish", "Gelu", "HardSigmoid", "Selu", "Shrink", *SLOPED),
)


@pytest.mark.parametrize("dtype", [*FLOATS, "bfloat16"])
@pytest.mark.parametrize("name", SMOOTH)
def test_functions_and_activations_are_close_to_numpys(name, dtype):
    kind = np.dtype(getattr(ml_dtypes, dtype, dtype))
    x = np.append(np.linspace(-9, 9, 1301), SPECIAL[:8]).astype(kind)
    attributes = {"alpha": 0.3} if name in SLOPED else {}
    case = typed(name, x, version=24, like=[x], **attributes)
    wanted = typed(name, x.astype(np.float64), version=24, **attributes).run()[0]
    rtol = {"float64": 1e-9, "float32": 5e-6, "float16": 1e-3, "bfloat16": 8e-3}[dtype]
    found = results(case, 2).astype(np.float64)
    atol = 1e-9 if dtype == "float64" else 5e-7
    np.testing.assert_allclose(found, wanted, rtol=rtol, atol=atol)


def test_gelu_by_tanh_is_close_to_numpys():
    x = np.linspace(-6, 6, 999).astype(np.float32)
    case = typed("Gelu", x, approximate="tanh", like=[x])
    np.testing.assert_allclose(results(case), case.run()[0], rtol=1e-5, atol=2e-6)


REAL = np.vectorize(math.erf)
ULPS = {
    "Exp": (np.exp, 1.0),
    "Log": (np.log, 1.0),
    "Tanh": (np.tanh, 2.6),
    "Erf": (REAL, 2.6),
    "Sin": (np.sin, 1.6),
    "Cos": (np.cos, 1.6),
    "Tan": (np.tan, 3.2),
}
"""float64 function, and the largest error of the float32 kernel in units in the last place."""


@pytest.mark.parametrize("name", ULPS)
@pytest.mark.parametrize("shift", [0, 4099])
def test_float32_functions_err_by_units_in_the_last_place_at_most(name, shift):
    function, limit = ULPS[name]
    x = np.arange(shift, 2**32, 48611, dtype=np.uint64).astype(np.uint32).view(np.float32)
    x = np.append(x, np.array(SPECIAL, np.float32))
    y = np.empty_like(x)
    kernel = NativeKernel.elementwise(name, ["float32"] * 2, [x.size], [[4], [4]], ())
    run_kernel(kernel, x, y)
    with np.errstate(all="ignore"):
        wanted = function(np.where(np.isinf(x), np.nan, x).astype(np.float64))
        wanted[np.isinf(x)] = np.float64(0)
        finite = np.abs(wanted) < np.finfo(np.float32).max
        finite &= ~np.isinf(x)
        units = np.abs(y.astype(np.float64) - wanted) / np.spacing(
            np.abs(wanted).astype(np.float32)
        )
    assert units[finite].max() <= limit
    assert np.isnan(y[np.isnan(x)]).all()


def test_functions_at_the_ends_of_float32():
    ends = np.array([math.inf, -math.inf, 0.0, -0.0], np.float32)
    assert results(typed("Exp", ends)).tolist() == [math.inf, 0, 1, 1]
    assert results(typed("Tanh", ends)).tolist() == [1, -1, 0, 0]
    assert results(typed("Erf", ends)).tolist() == [1, -1, 0, 0]
    np.testing.assert_array_equal(
        results(typed("Log", ends)), [math.inf, math.nan, -math.inf, -math.inf]
    )


def test_a_kernel_is_refused_with_other_operands_than_it_has():
    for name, count in (("Where", 2), ("Clip", 3), ("Cast", 3), ("Exp", 4), ("Nothing", 2)):
        assert NativeKernel.elementwise(name, ["float32"] * count, [], [[]] * count, ()) is None
    assert NativeKernel.elementwise("Exp", ["float32", "complex64"], [], [[], []], ()) is None


@pytest.mark.parametrize("name", ["Pow", "PRelu"])
def test_powers_and_slopes_take_a_second_operand(name):
    x = np.array([[0.5, 2, -3], [0, 1, 9]], np.float32)
    case = typed(name, x, np.array([2, 3, 1], np.float32))
    np.testing.assert_allclose(results(case), case.run()[0], rtol=1e-6)
    integers = typed(name, x.astype(np.int64), np.array([2, 3, 1]))
    assert_equal(integers)


def powers(x: Any, y: Any) -> Any:
    return results(typed("Pow", x, y))


def test_float32_powers_err_by_less_than_a_unit_in_the_last_place():
    bases = np.exp(np.linspace(-30, 30, 5003)).astype(np.float32)
    exponents = np.array([-3.5, -1, -0.5, 0.3, 0.5, 1.5, 2.5, 7], np.float32)
    for exponent in exponents:
        found = powers(bases, np.array(exponent)).astype(np.float64)
        wanted = bases.astype(np.float64) ** np.float64(exponent)
        normal = (wanted > np.finfo(np.float32).tiny) & (wanted < np.finfo(np.float32).max)
        units = np.abs(found - wanted)[normal] / np.spacing(wanted[normal].astype(np.float32))
        assert units.max() < 1.5 if exponent == -0.5 else units.max() < 0.51


@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_powers_of_and_by_special_values_are_those_of_c(dtype):
    numbers = [0.0, -0.0, 1, -1, 2, -2, 0.5, -0.5, 3, -3, 2.5, math.inf, -math.inf, math.nan]
    x, y = (grid.astype(dtype) for grid in np.meshgrid(numbers, numbers))
    with np.errstate(all="ignore"):
        wanted = np.power(x.astype(np.float64), y.astype(np.float64)).astype(dtype)
    for found in (powers(x, y), np.stack([powers(x[0], y[i, :1]) for i in range(len(y))])):
        np.testing.assert_allclose(found, wanted, rtol=2e-7)
        known = ~np.isnan(wanted)
        np.testing.assert_array_equal(np.signbit(found[known]), np.signbit(wanted[known]))


STREAMED_BYTES = NativeKernel.streamed_bytes("Add", "float32") or 1 << 25
STREAMED = STREAMED_BYTES // 4
ARITHMETIC = {"Add": np.add, "Sub": np.subtract, "Mul": np.multiply, "Div": np.divide}


def line_of(count: int, offset_bytes: int) -> Any:
    """Elements that begin so far behind the start of a line of the cache."""
    room = np.zeros(4 * count + 128, np.uint8)
    start = -room.ctypes.data % 64 + offset_bytes
    return room[start : start + 4 * count].view(np.float32)


@pytest.fixture(scope="module")
def long_rows():
    """Two rows, longer than is streamed and no whole number of lines."""
    random, rows = np.random.default_rng(0), []
    for _ in range(2):
        row = line_of(STREAMED + 37, 0)
        row[...] = np.resize(random.standard_normal(40_009, np.float32), row.shape)
        row[: len(SPECIAL) ** 2] = np.resize(SPECIAL, len(SPECIAL) ** 2)
        rows.append(row)
    rows[1][: len(SPECIAL) ** 2].sort()
    return rows


@pytest.mark.parametrize(("offset_bytes", "threads"), [(0, 1), (0, 3), (16, 2)])
@pytest.mark.parametrize("name", ARITHMETIC)
def test_long_results_are_the_same_whatever_way_they_are_written(
    long_rows, name, offset_bytes, threads
):
    target = line_of(STREAMED + 37, offset_bytes)
    kernel = dense_kernel(name, target.size)
    run_kernel(kernel, *long_rows, target, threads=threads)
    with np.errstate(all="ignore"):
        wanted = ARITHMETIC[name](*long_rows)
    np.testing.assert_array_equal(target, wanted)


def test_a_long_result_may_be_where_an_input_is(long_rows):
    x, y = long_rows
    target = x.copy()
    run_kernel(dense_kernel("Sub", target.size), target, y, target, threads=2)
    with np.errstate(all="ignore"):
        np.testing.assert_array_equal(target, x - y)


def test_long_rows_begin_anywhere_in_a_line(long_rows):
    x, y = (row[: STREAMED + 1] for row in long_rows)
    target = line_of(2 * x.size, 0)
    strides = [[0, 4], [0, 4], [4 * x.size, 4]]
    kernel = NativeKernel.elementwise("Add", ["float32"] * 3, [2, x.size], strides, [])
    run_kernel(kernel, x, y, target)
    with np.errstate(all="ignore"):
        np.testing.assert_array_equal(target.reshape(2, -1), np.stack([x + y] * 2))


def dense_kernel(name: str, count: int) -> NativeKernel:
    kernel = NativeKernel.elementwise(name, ["float32"] * 3, [count], [[4]] * 3, [])
    assert kernel is not None
    return kernel


@ONEDNN
@pytest.mark.parametrize("count", [STREAMED - 1, STREAMED])
def test_only_long_results_of_operands_of_their_shape_are_written_around_the_caches(count):
    is_long = count == STREAMED and NativeKernel.streamed_bytes("Add", "float32") is not None
    graph = graph_of(
        f"g (float[{count}] x, float[{count}] y) => (float[{count}] z) {{ z = Add (x, y) }}"
    )
    ((_, kernel, _),) = implementations(graph)
    assert kernel == ("native" if is_long else "onednn")
    graph = graph_of(f"g (float[{count}] x, float[1] y) => (float[{count}] z) {{ z = Add (x, y) }}")
    assert "onednn" in {kernel for _, kernel, _ in implementations(graph)}


def test_what_is_no_arithmetic_of_floats_is_written_plainly():
    for name, dtype in (("Max", "float32"), ("Add", "float64"), ("Add", "int32"), ("Add", "none")):
        assert NativeKernel.streamed_bytes(name, dtype) is None
