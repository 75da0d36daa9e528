"""The kernel that gathers rows of quantized blocks, run outside any model."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.engine.lower.native.block_weights import FORMS, Form, Matrix, matrix
from tests.engine.test_native import run_kernel
from tightship._core import KernelError, NativeKernel


def gathered(table: Matrix, depth, indices, *, zeros_if_outside=False, threads=1):
    target = np.full((len(indices), depth + 2), np.nan, np.float32)
    kernel = NativeKernel.block_gather(
        "n",
        (indices.itemsize, len(indices)),
        (len(table.quants), depth),
        table.format,
        target.strides[0],
        zeros_if_outside,
    )
    run_kernel(kernel, *table.operands, indices, target, threads=threads)
    assert np.isnan(target[:, depth:]).all()
    return target[:, :depth]


@given(FORMS, st.integers(1, 300), st.sampled_from([np.int32, np.int64]), st.integers(1, 3))
def test_rows_are_dequantized_to_the_last_bit_but_one(form, depth, dtype, threads):
    table = matrix(form, 9, depth)
    indices = np.array([3, 0, -1, 8, 3, -9], dtype)
    result = gathered(table, depth, indices, threads=threads)
    assert np.allclose(result, table.values[indices][:, :depth], rtol=2.0**-22, atol=0)


@pytest.mark.parametrize("index", [9, -10, 1 << 40, -(1 << 40)])
def test_an_index_outside_is_refused_or_selects_zeros(index):
    table = matrix(Form(4, 32), 9, 64)
    indices = np.array([2, index], np.int64)
    with pytest.raises(KernelError, match=rf"Node `n` selects row {index} of 9.*\[-9, 8\]"):
        gathered(table, 64, indices)
    result = gathered(table, 64, indices, zeros_if_outside=True)
    assert result[0].any()
    assert not result[1].any()
