"""Constants without elements: they have a size, stand-ins for passes, and no bytes to run with."""

import numpy as np
import pytest

from tightship.errors import InputError
from tightship.graph import DType, Inline, Mapped
from tightship.graph.absent import absent, is_absent, refuse_absent


def test_a_large_constant_takes_no_memory_and_has_stand_ins():
    constant = absent("w", DType.FLOAT32, (1 << 20, 1 << 14), 512)
    assert isinstance(constant, Mapped)
    assert constant.file.size_bytes == 1 << 36
    constant.release()


@pytest.mark.parametrize("count", [4, 4096])
@pytest.mark.parametrize("dtype", [DType.FLOAT32, DType.FLOAT64, DType.BFLOAT16])
def test_stand_ins_are_neither_equal_nor_special(count, dtype):
    array = absent("w", dtype, (count,), 512).array().astype(np.float64)
    assert array.shape == (count,)
    assert array.min() >= 0.5
    assert array.max() <= 1.5
    assert len(np.unique(array)) > 1
    other = absent("v", dtype, (count,), 512).array().astype(np.float64)
    assert not np.array_equal(array, other)


def test_small_ones_may_be_looked_into():
    constant = absent("b", DType.FLOAT32, (8, 2), 512)
    assert isinstance(constant, Inline)
    assert is_absent(constant)
    assert constant.array().shape == (8, 2)


@pytest.mark.parametrize("shape", [(2,), (4096,)])
def test_positions_have_no_stand_ins(shape):
    constant = absent("order", DType.INT64, shape, 512)
    with pytest.raises(InputError, match=r"elements of `order` \(int64\)"):
        constant.array()


def test_bytes_are_not_copied():
    constant = absent("w", DType.FLOAT32, (1024,), 512)
    with pytest.raises(InputError, match="`w` has a shape and no elements"):
        constant.file.read_into(0, memoryview(bytearray(4096)))


def test_a_model_with_some_is_refused_by_name():
    held = Inline(np.zeros(2, np.float32))
    refuse_absent([("a", held)])
    assert not is_absent(held)
    with pytest.raises(InputError, match="`b` has a shape and no elements"):
        refuse_absent([("a", held), ("b", absent("b", DType.FLOAT32, (2,), 512))])
