"""Integers in blocks, packed, unpacked and made real."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.frontend.onnx.contrib.case import Case, assert_as_onnxruntime, integers, normal
from tightship.engine.kernels.block_weights import BlockForm, dequantize, packed, unpacked

BITS = st.sampled_from([2, 4, 8])


@given(BITS, st.integers(1, 5), st.integers(0, 40), st.booleans())
def test_packing_is_undone(bits, columns, count, is_signed):
    low = -(1 << (bits - 1)) if is_signed else 0
    random = np.random.default_rng(count)
    codes = random.integers(low, low + (1 << bits), (count, columns)).astype(np.int16)
    raw = packed(codes.astype(np.uint8), bits)
    found = unpacked(np.ascontiguousarray(raw.T), bits, is_signed=is_signed)[:, :count].T
    assert (found == codes).all()


@pytest.mark.parametrize("zeros", ["none", "bytes", "real"])
@pytest.mark.parametrize("is_signed", [False, True])
@pytest.mark.parametrize("bits", [2, 4, 8])
def test_elements_are_computed_one_by_one(bits, is_signed, zeros):
    form = BlockForm(300, 40, bits, 16, is_signed)
    raw = integers(np.uint8, form.rows, form.row_bytes)
    scales = normal(form.rows, form.blocks)
    given_zeros = {"none": None, "bytes": integers(np.uint8, form.rows, form.zero_bytes),
                   "real": normal(form.rows, form.blocks)}[zeros]  # fmt: skip
    found = np.empty((form.rows, form.depth), np.float32)
    dequantize(form, raw, scales, given_zeros, found)
    for row, column in ((0, 0), (7, 15), (7, 16), (299, 39), (150, 33)):
        block = column // 16
        zero = given_zeros[row, block] if zeros == "real" else form.middle
        if zeros == "bytes":
            zero = element(given_zeros[row], block, bits, is_signed=is_signed)
        wanted = (element(raw[row], column, bits, is_signed=is_signed) - zero) * scales[row, block]
        assert found[row, column] == pytest.approx(wanted, rel=1e-6)


def element(raw, place, bits, *, is_signed):
    """One integer of a row, by the bits of a whole number."""
    number = int.from_bytes(raw.tobytes(), "little") >> (place * bits) & ((1 << bits) - 1)
    return number - (1 << bits) if is_signed and number >> (bits - 1) else number


@pytest.mark.parametrize("bits", [2, 4, 8])
def test_weights_that_only_the_run_knows(bits):
    inputs = {"x": normal(2, 48), "w": integers(np.uint8, 6, 3, 2 * bits), "s": normal(6, 3)}
    attributes = {"K": 48, "N": 6, "bits": bits, "block_size": 16}
    assert_as_onnxruntime(Case("MatMulNBits", inputs, attributes), within=1e-4)
