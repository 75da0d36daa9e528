"""The kernels of encoded rows, run outside any model, against sums in float64."""

import gguf
import numpy as np
import pytest

from tests.engine.lower.native.test_block_product import rounded
from tests.engine.test_native import run_kernel
from tests.frontend.gguf.written import random_blocks
from tightship._core import NativeKernel, block_level
from tightship.graph.row_codes import HALVES, ROW_CODES

LEVELS = ("portable", "avx2", "avx512", "vnni", "amx")
HERE = LEVELS[: 1 + LEVELS.index(block_level())]
ERROR = 1e-6
"""Largest error, as a part of the sum of magnitudes."""
BLOCKS = [kind for kind in ROW_CODES if kind not in HALVES]
GROUPS = {"Q6_K": 16}
"""Elements of activations with one scale, where they are not 32."""


def rows_of(kind: str, rows: int, depth: int) -> tuple[np.ndarray, np.ndarray]:
    """Return encoded rows, and their numbers."""
    raw = np.frombuffer(random_blocks(kind, rows, depth, 1).raw, np.uint8).reshape(rows, -1)
    return raw, gguf.quants.dequantize(raw, gguf.GGMLQuantizationType[kind]).astype(np.float32)


@pytest.mark.parametrize("most", HERE)
@pytest.mark.parametrize("kind", ROW_CODES)
def test_products_are_right(kind: str, most: str) -> None:
    depth = 2 * ROW_CODES[kind][0] + 256 * (ROW_CODES[kind][0] == 32)
    for columns, rows in ((70, 1), (5, 2), (70, 7), (64, 9), (130, 300)):
        raw, values = rows_of(kind, columns, depth)
        x = np.random.default_rng(rows).standard_normal((rows, depth)).astype(np.float32)
        bias = np.linspace(-1, 1, columns, dtype=np.float32) if rows % 2 else None
        found = [product(x, raw, kind, bias, most, threads) for threads in (1, 3)]
        assert found[0].tobytes() == found[1].tobytes()
        wanted = x.astype(np.float64) @ values.T + (0 if bias is None else bias)
        bound = ERROR * (np.abs(x) @ np.abs(values).T + 1)
        assert (np.abs(found[0] - wanted) <= bound).all()


@pytest.mark.parametrize("most", HERE)
@pytest.mark.parametrize("kind", BLOCKS)
def test_products_of_rounded_activations_are_right(kind: str, most: str) -> None:
    """Depths end within a step of the loops; every block counts."""
    shapes = (70, 1, 1), (5, 2, 2), (71, 7, 3), (64, 9, 5), (66, 140, 18), (21, 39, 5), (3, 400, 1)
    for columns, rows, units in shapes:
        depth = units * ROW_CODES[kind][0]
        raw, values = rows_of(kind, columns, depth)
        x = np.random.default_rng(rows).standard_normal((rows, depth)).astype(np.float32)
        x[0, :32], x[-1, 16:32] = 0, 1e-39
        bias = np.linspace(-1, 1, columns, dtype=np.float32) if rows % 2 else None
        found = [product(x, raw, kind, bias, most, threads, "int8") for threads in (1, 3)]
        assert found[0].tobytes() == found[1].tobytes()
        numbers, scales = rounded(x, GROUPS.get(kind, 32))
        near = (numbers * scales[..., None].astype(np.float64)).reshape(rows, -1)
        wanted = near @ values.T + (0 if bias is None else bias)
        bound = ERROR * (np.abs(near) @ np.abs(values).T + 1)
        assert (np.abs(found[0] - wanted) <= bound).all()
        assert (np.abs(found[0] - x @ values.T) > bound).any()


@pytest.mark.parametrize("most", HERE)
@pytest.mark.parametrize("kind", BLOCKS)
def test_activations_that_int8_cannot_hold_make_their_row_nan(kind: str, most: str) -> None:
    raw, _ = rows_of(kind, 6, 512)
    for rows in (1, 3, 20, 50):
        x = np.random.default_rng(rows).standard_normal((rows, 512)).astype(np.float32)
        for bad in (np.inf, -np.inf, np.nan):
            x[0, 300] = bad
            found = product(x, raw, kind, None, most, 1, "int8")
            assert np.isnan(found[0]).all()
            assert np.isfinite(found[1:]).all()


@pytest.mark.parametrize("most", HERE)
@pytest.mark.parametrize("mode", ["exact", "int8"])
@pytest.mark.parametrize("kind", ROW_CODES)
def test_a_row_has_the_same_bits_among_up_to_eight(kind: str, mode: str, most: str) -> None:
    """Steps of several sessions at once give each what it gets alone."""
    if mode == "int8" and kind in HALVES:
        return
    depth = 576 if ROW_CODES[kind][0] == 32 else 768  # ends behind four steps of the int8 loops
    raw, _ = rows_of(kind, 71, depth)
    x = np.random.default_rng(5).standard_normal((8, depth)).astype(np.float32)
    bias = np.linspace(-1, 1, 71, dtype=np.float32)
    alone = [product(x[row : row + 1], raw, kind, bias, most, 1, mode) for row in range(8)]
    for rows in range(2, 9):
        for first in {0, 8 - rows}:
            found = product(x[first : first + rows], raw, kind, bias, most, 2, mode)
            assert found.tobytes() == np.concatenate(alone[first : first + rows]).tobytes()


def product(
    x: np.ndarray,
    raw: np.ndarray,
    kind: str,
    bias: np.ndarray | None,
    most: str,
    threads: int,
    mode: str = "exact",
) -> np.ndarray:
    target = np.full((len(x), len(raw) + 3), np.nan, np.float32)
    make = NativeKernel.encoded_product_int8 if mode == "int8" else NativeKernel.encoded_product
    strides = x.strides[0], target.strides[0]
    kernel = make([len(x), x.shape[1], len(raw)], kind, bias is not None, strides, most)
    scratch = np.full(kernel.scratch_bytes(threads), 0xFF, np.uint8)
    biases = [] if bias is None else [bias]
    run_kernel(kernel, x, raw, *biases, target, scratch, threads=threads)
    assert np.isnan(target[:, len(raw) :]).all()
    return target[:, : len(raw)]


@pytest.mark.parametrize("kind", ROW_CODES)
def test_gathered_rows_are_those_of_llama_cpp_bit_for_bit(kind: str) -> None:
    raw, values = rows_of(kind, 7, 512)
    indices = np.array([3, -1, 0], np.int32)
    target = np.empty((3, 512), np.float32)
    kernel = NativeKernel.encoded_gather("n", (4, 3), (7, 512), kind, 512 * 4)
    run_kernel(kernel, raw, indices, target)
    np.testing.assert_array_equal(target, values[indices])


def test_impossible_kernels_are_refused() -> None:
    with pytest.raises(ValueError, match="ends in a unit"):
        NativeKernel.encoded_product([1, 80, 4], "Q4_K", False, (320, 16))
    with pytest.raises(ValueError, match="Unknown type of encoded rows `Q9`; choose among `F16`"):
        NativeKernel.encoded_product([1, 256, 4], "Q9", False, (1024, 16))
    with pytest.raises(ValueError, match="halves are multiplied by float32 alone"):
        NativeKernel.encoded_product_int8([1, 256, 4], "F16", False, (1024, 16))
    with pytest.raises(ValueError, match="multiplies nothing"):
        NativeKernel.encoded_product([0, 256, 4], "Q4_K", False, (1024, 16))
    with pytest.raises(ValueError, match="gathers nothing"):
        NativeKernel.encoded_gather("n", (8, 1), (0, 256), "Q4_K", 1024)
