from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import SparseTensorProto, TensorProto, helper, numpy_helper

from tests import models
from tightship.errors import FormatError
from tightship.frontend.onnx import read, read_bytes
from tightship.frontend.onnx.element import DTYPES, is_packed
from tightship.graph import Constant, Derived, DType, Inline, Mapped

SMALL, LARGE = (3, 5), (33, 61)
"""Odd numbers of elements, of which sub-byte types leave a part of the last byte unused."""

NUMBERS = [number for number, dtype in DTYPES.items() if dtype is not DType.STRING]


def constant_of(tensor: TensorProto) -> Constant:
    """The tensor as a constant, read from a model in which it is an initializer."""
    model = models.parse("agraph (float[1] x) => (float[1] y) { y = Neg (x) }")
    model.graph.initializer.append(tensor)
    return read_bytes(model.SerializeToString()).constants[tensor.name]


def tensor_of(number: int, shape: tuple[int, ...], *, raw: bool) -> TensorProto:
    """A tensor of random elements, in `raw_data` or in the field of its type."""
    random = np.random.default_rng(number)
    dtype = helper.tensor_dtype_to_np_dtype(number)
    if number in (TensorProto.COMPLEX64, TensorProto.COMPLEX128):
        values = random.standard_normal(shape) + 1j * random.standard_normal(shape)
        array = values.astype(dtype)
    else:
        array = random.integers(0, 2, shape).astype(np.float32).astype(dtype)
        array[0] = np.array(3).astype(np.float32).astype(dtype)
    if raw:
        return numpy_helper.from_array(array, "w")
    return typed(array, number)


def typed(array: models.Array, number: int) -> TensorProto:
    """The array in the field of its type, written by hand as the format says."""
    tensor = TensorProto(name="w", data_type=number, dims=array.shape)
    dtype = DTYPES[number]
    flat = array.reshape(-1)
    if is_packed(dtype) and "float6" not in dtype.value:
        tensor.int32_data.extend(numpy_helper.from_array(array).raw_data)
    elif number in (TensorProto.FLOAT, TensorProto.COMPLEX64):
        tensor.float_data.extend(flat.view(np.float32).tolist())
    elif number in (TensorProto.DOUBLE, TensorProto.COMPLEX128):
        tensor.double_data.extend(flat.view(np.float64).tolist())
    elif number == TensorProto.INT64:
        tensor.int64_data.extend(flat.tolist())
    elif number in (TensorProto.UINT32, TensorProto.UINT64):
        tensor.uint64_data.extend(flat.tolist())
    elif np.issubdtype(array.dtype, np.integer):
        tensor.int32_data.extend(flat.tolist())
    else:
        tensor.int32_data.extend(flat.view(f"u{array.dtype.itemsize}").tolist())
    return tensor


@pytest.mark.parametrize("shape", [SMALL, LARGE], ids=["small", "large"])
@pytest.mark.parametrize("raw", [True, False], ids=["raw", "typed"])
@pytest.mark.parametrize("number", NUMBERS, ids=lambda number: DTYPES[number].value)
def test_elements_are_those_that_onnx_reads(number: int, raw: bool, shape: tuple[int, ...]) -> None:
    tensor = tensor_of(number, shape, raw=raw)
    expected = numpy_helper.to_array(tensor)
    constant = constant_of(tensor)
    assert constant.dtype is DTYPES[number]
    assert constant.shape == shape
    found = constant.array()
    assert found.dtype == expected.dtype
    assert found.tobytes() == expected.tobytes()
    with pytest.raises(ValueError, match="read-only"):
        found[0] = found[1]


@pytest.mark.parametrize("values", [[-1, -(1 << 31), (1 << 31) - 1, 0], list(range(-300, 300))])
def test_numbers_below_zero_keep_their_sign(values: list[int]) -> None:
    for dtype in (np.int32, np.int64):
        array = np.array(values, dtype)
        tensor = typed(array, helper.np_dtype_to_tensor_dtype(array.dtype))
        assert constant_of(tensor).array().tolist() == values


def test_large_dense_elements_are_mapped_and_small_ones_held() -> None:
    for raw in (True, False):
        assert isinstance(constant_of(tensor_of(TensorProto.FLOAT, LARGE, raw=raw)), Mapped)
        assert isinstance(constant_of(tensor_of(TensorProto.FLOAT, SMALL, raw=raw)), Inline)
    assert isinstance(constant_of(tensor_of(TensorProto.INT4, LARGE, raw=True)), Derived)


def test_strings_are_python_strings() -> None:
    constant = constant_of(helper.make_tensor("w", TensorProto.STRING, [2], ["é", ""]))
    assert constant.dtype is DType.STRING
    assert constant.array().tolist() == ["é", ""]


def test_a_tensor_without_elements_needs_no_bytes() -> None:
    constant = constant_of(TensorProto(name="w", data_type=1, dims=[3, 0, 5]))
    assert constant.array().shape == (3, 0, 5)


def sparse(indices: TensorProto, dims: tuple[int, ...]) -> onnx.ModelProto:
    model = models.parse("agraph (float[2, 3] x) => (float[2, 3] y) { y = Add (x, w) }")
    values = numpy_helper.from_array(np.array([5, 7], np.float32), "w")
    model.graph.sparse_initializer.append(
        SparseTensorProto(values=values, indices=indices, dims=dims)
    )
    return model


@pytest.mark.parametrize("indices", [[1, 5], [[0, 1], [1, 2]]], ids=["linear", "by axis"])
def test_sparse_tensors_are_filled_in(indices: list[int]) -> None:
    proto = numpy_helper.from_array(np.array(indices, np.int64))
    graph = read_bytes(sparse(proto, (2, 3)).SerializeToString())
    array = graph.constants["w"].array()
    assert array.tolist() == [[0, 5, 0], [0, 0, 7]]
    assert not array.flags.writeable


def test_a_large_sparse_attribute_is_mapped() -> None:
    values = numpy_helper.from_array(models.filled(500))
    indices = numpy_helper.from_array(np.arange(500, dtype=np.int64) * 2)
    tensor = SparseTensorProto(values=values, indices=indices, dims=[1000])
    model = models.parse("agraph (float[1000] x) => (float[1000] y) { y = Add (x, w) }")
    model.graph.node.insert(0, helper.make_node("Constant", [], ["w"], sparse_value=tensor))
    constant = read_bytes(model.SerializeToString()).constants["w"]
    assert isinstance(constant, Derived)
    assert all(isinstance(source, Mapped) for source in constant.sources)
    assert np.array_equal(constant.array()[::2], models.filled(500))


def test_sparse_indices_outside_the_shape_are_refused() -> None:
    proto = numpy_helper.from_array(np.array([1, 6], np.int64))
    with pytest.raises(FormatError, match="out of bounds"):
        read_bytes(sparse(proto, (2, 3)).SerializeToString()).constants["w"].array()


def test_sparse_indices_that_do_not_match_the_values_are_refused() -> None:
    proto = numpy_helper.from_array(np.array([1, 2, 3], np.int64))
    with pytest.raises(FormatError, match="one row"):
        read_bytes(sparse(proto, (2, 3)).SerializeToString())


REFUSED = {
    "unknown element type 99": TensorProto(name="w", data_type=99, dims=[1]),
    "unknown element type 0": TensorProto(name="w", dims=[1]),
    "holds 7 bytes": TensorProto(name="w", data_type=1, dims=[2], raw_data=bytes(7)),
    "holds 4000 bytes": TensorProto(name="w", data_type=1, dims=[999], raw_data=bytes(4000)),
    "holds 0 bytes": TensorProto(name="w", data_type=1, dims=[1 << 40]),
    "none negative": TensorProto(name="w", data_type=1, dims=[2, -1]),
    "at most 64 dimensions": TensorProto(name="w", data_type=1, dims=[1] * 65, float_data=[1]),
    "elements": TensorProto(name="w", data_type=1, dims=[1 << 62, 1 << 62, 0]),
    "`float_data`": TensorProto(name="w", data_type=7, dims=[500], float_data=[1] * 500),
    "`int64_data`": TensorProto(name="w", data_type=1, dims=[600], int64_data=[1] * 600),
    "more than one field": TensorProto(
        name="w", data_type=1, dims=[500], raw_data=bytes(2000), float_data=[1]
    ),
    "segments": TensorProto(
        name="w", data_type=1, dims=[1], segment=TensorProto.Segment(begin=0, end=4)
    ),
    "has 1 elements": TensorProto(name="w", data_type=8, dims=[2], string_data=[b"a"]),
}


@pytest.mark.parametrize("reason", REFUSED)
def test_tensors_whose_bytes_do_not_fit_are_refused(reason: str) -> None:
    with pytest.raises(FormatError, match=reason) as caught:
        constant_of(REFUSED[reason])
    assert "`w`" in str(caught.value)


def test_large_numbers_that_do_not_fit_are_refused_when_they_are_read() -> None:
    constant = constant_of(TensorProto(name="w", data_type=7, dims=[601], int64_data=[1] * 600))
    with pytest.raises(FormatError, match="holds 4800 bytes"):
        constant.array()


def test_a_path_and_bytes_give_the_same_constants(tmp_path: Path) -> None:
    model = models.mlp(64)
    path = tmp_path / "model.onnx"
    path.write_bytes(model.SerializeToString())
    mapped, held = (
        read(path, allow_symbolic=True),
        read_bytes(path.read_bytes(), allow_symbolic=True),
    )
    for name, constant in mapped.constants.items():
        assert constant.array().tobytes() == held.constants[name].array().tobytes()
