"""Tensors of any type that is computed with, drawn by their seed."""

import numpy as np
from hypothesis import strategies as st

from tests.driver.nnapi.network import ARRAYS, F16, F32, I8, I32, RANGES, U8, kind_of

TYPES = st.sampled_from((F32, F32, F16, U8, I8))
SEEDS = st.integers(0, 2**32 - 1)
LENGTHS = st.integers(1, 4)
ACTIVATIONS = st.integers(0, 3)

OFFSETS = {U8: 120, I8: -7}


def output_of(operand_type, shape, scale=0.06):
    """The type of an output."""
    if operand_type in RANGES:
        return kind_of(operand_type, shape, scale, OFFSETS[operand_type])
    return kind_of(operand_type, shape)


def tensor(rng, operand_type, shape, scale=0.02):
    """Elements and their type; quantized ones with a zero point of their own."""
    if operand_type in RANGES:
        low, high = RANGES[operand_type]
        array = rng.integers(low, high, shape, endpoint=True).astype(ARRAYS[operand_type])
        return array, kind_of(operand_type, shape, scale, int(rng.integers(low, high)))
    array = rng.uniform(-2, 2, shape).astype(ARRAYS[operand_type])
    return array, kind_of(operand_type, shape)


def bias_of(rng, operand_type, count, scale):
    """A bias: of quantized operations INT32 in units of the products."""
    if operand_type in RANGES:
        return rng.integers(-999, 999, count).astype(np.int32), kind_of(I32, (count,), scale)
    return tensor(rng, operand_type, (count,))
