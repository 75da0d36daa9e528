import re

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from onnx import TensorProto, helper

from tightship.errors import GraphError
from tightship.graph import DType, element_count, size_bytes

ONNX_TYPES = {
    name: helper.tensor_dtype_to_np_dtype(number)
    for name, number in TensorProto.DataType.items()
    if name != "UNDEFINED"
}


def bits(dtype):
    """Bits of an element as its own name counts them; a complex number's parts included."""
    digits = "".join(c for c in dtype.value.split("_")[0] if c.isdigit())
    return {"bfloat16": 16, "bool": 8}.get(dtype.value, int(digits or 0))


@pytest.mark.parametrize("dtype", [d for d in DType if d is not DType.STRING])
def test_an_element_takes_the_bits_of_its_name_or_a_byte(dtype):
    assert dtype.itemsize == max(bits(dtype), 8) // 8
    assert np.empty(3, dtype.numpy).nbytes == 3 * dtype.itemsize


@pytest.mark.parametrize("dtype", DType)
def test_a_type_comes_back_from_its_numpy_dtype(dtype):
    assert DType.of(dtype.numpy) is dtype


@pytest.mark.parametrize("dtype", [d for d in DType if d is not DType.STRING])
def test_a_numpy_dtype_has_the_name_of_its_type(dtype):
    assert dtype.numpy.name == dtype.value


@pytest.mark.parametrize("name", ONNX_TYPES)
def test_every_element_type_of_onnx_is_one_of_ours(name):
    assert DType.of(ONNX_TYPES[name]).numpy == ONNX_TYPES[name]


def test_types_of_onnx_are_distinguished():
    assert len({DType.of(dtype) for dtype in ONNX_TYPES.values()}) == len(ONNX_TYPES)


def test_strings_are_python_objects_that_take_no_bytes_of_an_array():
    assert DType.STRING.numpy == np.dtype(object)
    assert DType.STRING.itemsize == 0
    assert size_bytes(DType.STRING, (1000,)) == 0


@pytest.mark.parametrize("dtype", [object, "U7", "S3", str, bytes])
def test_text_of_any_length_is_a_string(dtype):
    assert DType.of(dtype) is DType.STRING


@pytest.mark.parametrize(
    "dtype", ["datetime64[s]", np.dtype([("a", np.int8)]), ml_dtypes.float8_e3m4]
)
def test_a_dtype_without_an_element_type_is_named(dtype):
    with pytest.raises(GraphError, match=re.escape(f"`{np.dtype(dtype).name}`")):
        DType.of(dtype)


def test_byte_order_is_no_part_of_a_type():
    assert DType.of(">f4") is DType.of("<f4") is DType.FLOAT32


@given(st.lists(st.integers(0, 6), max_size=5), st.sampled_from(DType))
def test_sizes_are_those_of_a_dense_array(shape, dtype):
    array = np.empty(shape, dtype.numpy)
    assert element_count(shape) == array.size
    if dtype is not DType.STRING:
        assert size_bytes(dtype, shape) == array.nbytes
