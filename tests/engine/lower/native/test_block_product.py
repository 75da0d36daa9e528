"""The kernel of products by quantized blocks, run outside any model, against sums in float64."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.engine.lower.native.block_weights import FORMS, Form, Matrix, matrix
from tests.engine.test_native import run_kernel
from tightship._core import NativeKernel, block_level

LEVELS = ("portable", "avx2", "avx512", "vnni", "amx")
HERE = LEVELS[: LEVELS.index(block_level()) + 1]
EXACT_ERROR = 1e-6
"""Largest error of the mode exact, as a part of the sum of magnitudes."""
INT8_ERROR = 3e-7
"""Largest distance of the mode int8 from its model, likewise."""


def product(x, weights: Matrix, mode, *, bias=None, threads=1, most="amx"):
    rows, depth = x.shape
    columns = len(weights.quants)
    target = np.full((rows, columns + 3), np.nan, np.float32)
    kernel = NativeKernel.block_product(
        [rows, depth, columns],
        weights.format,
        bias is not None,
        mode,
        (x.strides[0], target.strides[0]),
        most,
    )
    scratch = np.full(kernel.scratch_bytes(threads), 0xFF, np.uint8)
    operands = [*weights.operands, *([] if bias is None else [bias]), target, scratch]
    run_kernel(kernel, x, *operands, threads=threads)
    assert np.isnan(target[:, columns:]).all()
    return target[:, :columns]


def rounded(x: np.ndarray, block: int) -> tuple[np.ndarray, np.ndarray]:
    """Return what int8 makes of activations, and their blocks' scales."""
    padded = np.pad(x, ((0, 0), (0, -x.shape[1] % block))).reshape(len(x), -1, block)
    largest = np.abs(padded).max(-1, keepdims=True)
    with np.errstate(divide="ignore", over="ignore"):
        factor = np.where(largest < 2.0**-119, 0, np.float32(127) / largest).astype(np.float32)
        return np.rint(padded * factor), (largest / np.float32(127))[..., 0]


def wanted(x, weights: Matrix, mode):
    """Return sums in float64, and the sums of magnitudes."""
    depth = x.shape[1]
    values = weights.values[:, :depth]
    if mode == "exact":
        return x.astype(np.float64) @ values.T, np.abs(x) @ np.abs(values).T
    numbers, scales = rounded(x, weights.form.block)
    near = (numbers * scales[..., None].astype(np.float64)).reshape(len(x), -1)[:, :depth]
    return near @ values.T, np.abs(near) @ np.abs(values).T


def assert_right(x, weights: Matrix, mode, result, bias=None):
    truth, magnitudes = wanted(x, weights, mode)
    if weights.form.zeros != "middle":  # quants less the middle are summed apart from the rest
        far = 1 << weights.form.bits
        wide = np.abs(x) @ (np.abs(weights.scales).repeat(weights.form.block, -1) * far)[
            :, : x.shape[1]
        ].T.astype(np.float64)
        magnitudes = np.maximum(magnitudes, wide / 2)
    if bias is not None:
        truth, magnitudes = truth + bias, magnitudes + np.abs(bias)
    bound = EXACT_ERROR if mode == "exact" else INT8_ERROR
    assert (np.abs(result - truth) <= bound * magnitudes + 1e-30).all()


@given(
    FORMS, st.integers(1, 70), st.integers(1, 700), st.integers(1, 80), st.booleans(),
    st.sampled_from(["exact", "int8"]), st.sampled_from(HERE),
)  # fmt: skip
def test_any_form_is_right_at_any_level(form, rows, depth, columns, has_bias, mode, most):
    weights = matrix(form, columns, depth)
    random = np.random.default_rng(1)
    x = random.standard_normal((rows, depth), np.float32)
    bias = random.standard_normal(columns, np.float32) if has_bias else None
    result = product(x, weights, mode, bias=bias, most=most)
    assert_right(x, weights, mode, result, bias)
    for threads in (2, 3):
        again = product(x, weights, mode, bias=bias, most=most, threads=threads)
        assert again.tobytes() == result.tobytes()


@pytest.mark.parametrize("most", HERE)
@pytest.mark.parametrize("mode", ["exact", "int8"])
@pytest.mark.parametrize("rows", [1, 2, 7, 8, 16, 33, 300])
@pytest.mark.parametrize(
    "form",
    [
        Form(4, 32), Form(4, 32, scale="float16"), Form(8, 64, by_row=True),
        Form(4, 128, zeros="packed"),
    ],
    ids=str,
)  # fmt: skip
def test_shapes_of_language_models_are_right(form, rows, mode, most):
    weights = matrix(form, 96, 576)
    x = np.random.default_rng(2).standard_normal((rows, 576), np.float32)
    assert_right(x, weights, mode, product(x, weights, mode, most=most))


@pytest.mark.parametrize("most", HERE)
@pytest.mark.parametrize("mode", ["exact", "int8"])
@pytest.mark.parametrize(
    "form",
    [
        Form(4, 32, scale="float16"), Form(8, 32, scale="float16"), Form(4, 64, zeros="packed"),
        Form(8, 16, zeros="floats"), Form(2, 128), Form(8, 64, by_row=True, is_signed=True),
        Form(4, 32, is_signed=True), Form(2, 1024),
    ],
    ids=str,
)  # fmt: skip
def test_a_row_has_the_same_bits_among_up_to_eight(form, mode, most):
    """Steps of several sessions at once give each what it gets alone."""
    for columns, depth in ((71, 672), (6, 90), (64, 576), (19, 1536)):
        weights = matrix(form, columns, depth)
        x = np.random.default_rng(columns).standard_normal((8, depth), np.float32)
        bias = np.linspace(-1, 1, columns, dtype=np.float32)
        alone = [product(x[row : row + 1], weights, mode, bias=bias, most=most) for row in range(8)]
        for rows in range(2, 9):
            for first in {0, 8 - rows}:
                found = product(x[first : first + rows], weights, mode, bias=bias, most=most)
                assert found.tobytes() == np.concatenate(alone[first : first + rows]).tobytes()


@pytest.mark.parametrize("most", HERE)
@pytest.mark.parametrize(("mode", "rows"), [("exact", 3), ("int8", 3), ("int8", 20)])
@pytest.mark.parametrize(("bits", "block"), [(8, 64), (4, 128), (2, 1024), (4, 32)])
def test_extreme_quants_do_not_overflow(bits, block, mode, rows, most):
    depth = 512 if mode == "exact" else 2048
    weights = matrix(Form(bits, block), 40, depth)
    middle = 1 << (bits - 1)
    for quant in (0, 2 * middle - 1):
        weights.quants[:] = 255 if quant else 0
        extreme = replace(weights, integers=np.full(weights.integers.shape, float(quant - middle)))
        for sign in (-1, 1):
            x = np.full((rows, depth), sign * 5, np.float32)
            assert_right(x, extreme, mode, product(x, extreme, mode, most=most))


@pytest.mark.parametrize("most", HERE)
@pytest.mark.parametrize("rows", [1, 40])
def test_activations_that_int8_cannot_hold(rows, most):
    weights = matrix(Form(4, 32), 40, 128)
    x = np.random.default_rng(3).standard_normal((rows, 128), np.float32)
    x[0, :32] = 1e-39
    x[0, 32:64] = 0
    assert_right(x, weights, "int8", product(x, weights, "int8", most=most))
    for bad in (np.inf, -np.inf, np.nan):
        x[0, 70] = bad
        result = product(x, weights, "int8", most=most)
        assert np.isnan(result[0]).all()
        assert np.isfinite(result[1:]).all()
        assert not np.isfinite(product(x, weights, "exact", most=most)[0]).any()


def test_strides_between_blocks_and_rows_are_followed():
    form = Form(4, 32, scale="float16", zeros="floats")
    apart = matrix(form, 24, 160)
    spaced = {"quants": apart.quants, "scales": apart.scales, "zeros": apart.zeros}
    for name, array in spaced.items():
        wide = np.full((2 * array.shape[0], 3 * array.shape[1], *array.shape[2:]), 0xA5)
        wide = wide.astype(array.dtype)
        wide[::2, ::3] = array
        spaced[name] = wide[::2, ::3]
    x = np.random.default_rng(4).standard_normal((3, 160), np.float32)
    for mode in ("exact", "int8"):
        assert_right(x, apart, mode, product(x, replace(apart, **spaced), mode))


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"bits": 3}, "2, 4 or 8 bits"),
        ({"block": 24}, "power of two"),
        ({"block": 8}, "power of two"),
        ({"scale": "float64"}, "Unknown type of scales `float64`"),
        ({"zeros": "none"}, "Unknown kind of zero points `none`"),
    ],
)
def test_an_impossible_form_is_refused(changed, message):
    weights = matrix(Form(4, 32), 4, 64)
    with pytest.raises(ValueError, match=message):
        product(np.zeros((1, 64), np.float32), replace(weights, form=_changed(changed)), "exact")


def _changed(changed):
    return replace(Form(4, 32), **changed)


def test_another_mode_or_shape_is_refused():
    weights = matrix(Form(4, 32), 4, 64)
    with pytest.raises(ValueError, match="Unknown mode of a block product `int4`"):
        product(np.zeros((1, 64), np.float32), weights, "int4")
    with pytest.raises(ValueError, match="multiplies nothing"):
        product(np.zeros((1, 0), np.float32), weights, "exact")
