"""The kernels of encoded rows, run outside any model, against sums in float64."""

import gguf
import numpy as np
import pytest

from tests.engine.test_native import run_kernel
from tests.frontend.gguf.written import random_blocks
from tightship._core import NativeKernel, block_level
from tightship.graph.row_codes import ROW_CODES

LEVELS = ("portable", "avx2", "avx512")
HERE = LEVELS[: 1 + min((*LEVELS, "vnni", "amx").index(block_level()), 2)]
ERROR = 1e-6
"""Largest error, as a part of the sum of magnitudes."""


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
@pytest.mark.parametrize("kind", ROW_CODES)
def test_a_row_has_the_same_bits_among_up_to_eight(kind: str, most: str) -> None:
    """Steps of several sessions at once give each what it gets alone."""
    depth = 2 * ROW_CODES[kind][0] + 256 * (ROW_CODES[kind][0] == 32)
    raw, _ = rows_of(kind, 71, depth)
    x = np.random.default_rng(5).standard_normal((8, depth)).astype(np.float32)
    bias = np.linspace(-1, 1, 71, dtype=np.float32)
    alone = [product(x[row : row + 1], raw, kind, bias, most, 1) for row in range(8)]
    for rows in range(2, 9):
        for first in {0, 8 - rows}:
            found = product(x[first : first + rows], raw, kind, bias, most, 2)
            assert found.tobytes() == np.concatenate(alone[first : first + rows]).tobytes()


def product(
    x: np.ndarray, raw: np.ndarray, kind: str, bias: np.ndarray | None, most: str, threads: int
) -> np.ndarray:
    target = np.full((len(x), len(raw) + 3), np.nan, np.float32)
    kernel = NativeKernel.encoded_product(
        [len(x), x.shape[1], len(raw)], kind, bias is not None, (x.strides[0], target.strides[0]),
        most,
    )  # fmt: skip
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
    with pytest.raises(ValueError, match="multiplies nothing"):
        NativeKernel.encoded_product([0, 256, 4], "Q4_K", False, (1024, 16))
    with pytest.raises(ValueError, match="gathers nothing"):
        NativeKernel.encoded_gather("n", (8, 1), (0, 256), "Q4_K", 1024)
