"""Bytes and lists from and to arrays."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tightship.driver.oip.datatypes import TYPES, type_of
from tightship.driver.oip.refusal import OipError
from tightship.driver.oip.tensors import BINARY_ONLY, from_bytes, from_list, to_bytes, to_list
from tightship.graph import DType

SHAPES = st.lists(st.integers(0, 3), max_size=3).map(tuple)
FIXED = [name for name in TYPES if name != "BYTES"]


@given(st.sampled_from(FIXED), SHAPES, st.integers(0, 7), st.randoms())
def test_bytes_come_back_whatever_they_are(name, shape, offset, random):
    dtype = type_of(name)
    raw = random.randbytes(math.prod(shape) * dtype.itemsize)
    if dtype is DType.BOOL:
        raw = bytes(each & 1 for each in raw)
    body = memoryview(bytes(offset) + raw)[offset:]
    array = from_bytes("model", "x", dtype, shape, body)
    assert array.shape == shape
    assert array.dtype == dtype.numpy
    assert array.flags.aligned
    assert bytes(to_bytes(array, dtype)) == raw


@given(st.lists(st.binary()))
def test_strings_of_any_bytes_come_back(elements):
    raw = b"".join(len(each).to_bytes(4, "little") + each for each in elements)
    array = from_bytes("model", "x", DType.STRING, (len(elements),), raw)
    assert bytes(to_bytes(array, DType.STRING)) == raw


@given(st.lists(st.text(st.characters(exclude_categories=["Cs"]))))
def test_strings_come_back(strings):
    array = np.array([*strings, None], object)[:-1]
    raw = to_bytes(array, DType.STRING)
    assert list(from_bytes("model", "x", DType.STRING, array.shape, raw)) == strings
    assert from_list("x", DType.STRING, array.shape, strings).tolist() == strings


@given(st.sampled_from(FIXED), SHAPES)
def test_lists_come_back(name, shape):
    dtype = type_of(name)
    array = np.arange(math.prod(shape)).reshape(shape).astype(dtype.numpy)
    if dtype in BINARY_ONLY:
        with pytest.raises(OipError, match="via JSON is not supported"):
            to_list("x", array, dtype)
    else:
        found = from_list("x", dtype, shape, to_list("x", array, dtype))
        assert np.array_equal(found, array)
        assert found.dtype == dtype.numpy


def test_half_of_a_surrogate_pair_is_no_string():
    with pytest.raises(OipError, match="that is not BYTES"):
        from_list("x", DType.STRING, (2,), ["a", "\ud800"])


def test_any_byte_but_zero_is_true():
    array = from_bytes("model", "x", DType.BOOL, (3,), b"\0\1\xff")
    assert bytes(to_bytes(array, DType.BOOL)) == b"\0\1\1"
