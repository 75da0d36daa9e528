"""Conversion of a skeleton's TensorProto to a constant: mapped if large, else held."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray
from onnx import SparseTensorProto, TensorProto

from tightship.errors import FormatError
from tightship.frontend.onnx.element import DTYPES, is_packed, packed_bytes, unpack
from tightship.frontend.onnx.external import ExternalFiles
from tightship.frontend.onnx.skeleton import TensorField
from tightship.frontend.onnx.types import ELEMENTS_MAX
from tightship.frontend.onnx.varint import decode_varints
from tightship.graph import Constant, Derived, DType, Inline, Mapped, MappedFile, element_count
from tightship.graph.constant import Array
from tightship.graph.texts import decoded

RANK_MAX = 64
"""Most dimensions of an array."""

_FIELD_NAMES = tuple(field.name.lower() for field in TensorField)

_DENSE_FIELDS = {
    TensorField.FLOAT_DATA: (DType.FLOAT32, DType.COMPLEX64),
    TensorField.DOUBLE_DATA: (DType.FLOAT64, DType.COMPLEX128),
}
_VARINT_FIELDS = {
    TensorField.INT64_DATA: (DType.INT64,),
    TensorField.UINT64_DATA: (DType.UINT32, DType.UINT64),
}


@dataclass(frozen=True, slots=True)
class Tensors:
    """Sources of tensors' bytes."""

    file: MappedFile
    payloads: Mapping[tuple[int, int], TensorField]
    external: ExternalFiles

    def constant(self, tensor: TensorProto, name: str) -> Constant:
        """Convert a tensor to a constant; only few elements are read.

        Raises:
            FormatError: Type, shape and stored bytes do not agree.
        """
        dtype = DTYPES.get(tensor.data_type)
        if dtype is None:
            raise FormatError(f"Tensor `{name}` has the unknown element type {tensor.data_type}.")
        shape = _dimensions(tuple(tensor.dims), name)
        if tensor.data_location == TensorProto.EXTERNAL:
            return self._external(tensor, dtype, shape)
        if tensor.HasField("segment"):
            return self._mapped(tensor, dtype, shape, name)
        if dtype is DType.STRING:
            return Inline(_strings(tensor, shape, name))
        raw = _stored_bytes(tensor, dtype)
        _check_size(name, dtype, shape, raw.size)
        return Inline(_frozen(unpack(raw, dtype, shape)))

    def sparse(self, tensor: SparseTensorProto, name: str) -> Constant:
        """Convert a sparse tensor to a dense constant, computed at each use.

        Raises:
            FormatError: Values, indices and shape do not agree.
        """
        values = self.constant(tensor.values, name)
        indices = self.constant(tensor.indices, f"{name} (indices)")
        shape = _dimensions(tuple(tensor.dims), name)
        linear = indices.shape == values.shape
        by_axis = indices.shape == (*values.shape, len(shape))
        if indices.dtype is not DType.INT64 or len(values.shape) != 1 or not (linear or by_axis):
            raise FormatError(
                f"Sparse tensor `{name}` has {values.shape} values at indices of type "
                f"{indices.dtype.value}{list(indices.shape)}; it needs int64 indices, one row "
                "for each value."
            )
        compute = partial(_densify, values, indices, shape, name)
        return Derived(values.dtype, shape, compute, (values, indices), "sparse")

    def _external(self, tensor: TensorProto, dtype: DType, shape: tuple[int, ...]) -> Constant:
        if dtype is DType.STRING:
            raise FormatError(f"String tensor `{tensor.name}` cannot be external data.")
        file, offset = self.external.find(tensor, packed_bytes(dtype, shape))
        return _dense(file, offset, dtype, shape)

    def _mapped(
        self, tensor: TensorProto, dtype: DType, shape: tuple[int, ...], name: str
    ) -> Constant:
        begin, stop = tensor.segment.begin, tensor.segment.end
        field = self.payloads.get((begin, stop))
        if field is None:
            raise FormatError(f"Tensor `{name}` is stored in segments, which is not supported.")
        if any(getattr(tensor, other) for other in _FIELD_NAMES):
            raise FormatError(f"Tensor `{name}` stores its elements in more than one field.")
        if field is TensorField.RAW_DATA or dtype in _DENSE_FIELDS.get(field, ()):
            _check_size(name, dtype, shape, stop - begin)
            return _dense(self.file, begin, dtype, shape)
        if field in _DENSE_FIELDS or dtype is DType.STRING or not _holds(field, dtype):
            raise FormatError(
                f"Tensor `{name}` has type {dtype.value}, but stores its elements in "
                f"`{field.name.lower()}`."
            )
        place = Mapped(self.file, begin, DType.UINT8, (stop - begin,))
        compute = partial(_from_varints, place, dtype, shape, name)
        return Derived(dtype, shape, compute, (place,), "varints")


def _dense(file: MappedFile, offset: int, dtype: DType, shape: tuple[int, ...]) -> Constant:
    if not is_packed(dtype):
        return Mapped(file, offset, dtype, shape)
    place = Mapped(file, offset, DType.UINT8, (packed_bytes(dtype, shape),))
    return Derived(dtype, shape, partial(_unpack_place, place, dtype, shape), (place,), "packed")


def _unpack_place(place: Mapped, dtype: DType, shape: tuple[int, ...]) -> Array:
    return _frozen(unpack(place.array().view(np.uint8), dtype, shape))


def _from_varints(place: Mapped, dtype: DType, shape: tuple[int, ...], name: str) -> Array:
    numbers = decode_varints(place.array().view(np.uint8), name)
    raw = _narrow(numbers, dtype)
    _check_size(name, dtype, shape, raw.size)
    return _frozen(unpack(raw, dtype, shape))


def _densify(values: Constant, indices: Constant, shape: tuple[int, ...], name: str) -> Array:
    dense = np.zeros(shape, values.dtype.numpy)
    where = indices.array().astype(np.int64)
    try:
        if where.ndim == 1:
            dense.reshape(-1)[where] = values.array()
        else:
            dense[tuple(where.T)] = values.array()
    except IndexError as error:
        raise FormatError(f"Sparse tensor `{name}` of shape {list(shape)}: {error}.") from None
    return _frozen(dense)


def _holds(field: TensorField, dtype: DType) -> bool:
    if field is TensorField.INT32_DATA:
        others = (*_DENSE_FIELDS.values(), *_VARINT_FIELDS.values())
        return all(dtype not in dtypes for dtypes in others) and dtype is not DType.STRING
    return dtype in _VARINT_FIELDS[field]


def _stored_bytes(tensor: TensorProto, dtype: DType) -> NDArray[np.uint8]:
    """Return a small tensor's elements in the format of `raw_data`."""
    if tensor.HasField("raw_data"):
        return np.frombuffer(tensor.raw_data, np.uint8)
    if dtype in _DENSE_FIELDS[TensorField.FLOAT_DATA]:
        return _as_bytes(np.array(tensor.float_data, np.float32))
    if dtype in _DENSE_FIELDS[TensorField.DOUBLE_DATA]:
        return _as_bytes(np.array(tensor.double_data, np.float64))
    if dtype is DType.INT64:
        return _as_bytes(np.array(tensor.int64_data, np.int64))
    if dtype in _VARINT_FIELDS[TensorField.UINT64_DATA]:
        return _narrow(np.array(tensor.uint64_data, np.uint64), dtype)
    return _narrow(np.array(tensor.int32_data, np.int32).astype(np.uint64), dtype)


def _narrow(numbers: NDArray[np.uint64], dtype: DType) -> NDArray[np.uint8]:
    """Return bytes of elements, or packed bytes, stored one to a number."""
    if dtype is DType.BOOL:
        return _as_bytes(numbers != 0)
    if dtype in (DType.FLOAT6E2M3FN, DType.FLOAT6E3M2FN):
        bits = np.unpackbits(numbers.astype(np.uint8)[:, None], axis=1, bitorder="little")
        return np.packbits(bits[:, :6].reshape(-1), bitorder="little")
    width = 1 if is_packed(dtype) else dtype.itemsize
    return _as_bytes(numbers.astype(np.dtype(f"u{width}")))


def _as_bytes(array: Array) -> NDArray[np.uint8]:
    raw: NDArray[np.uint8] = array.view(np.uint8)
    return raw


def _strings(tensor: TensorProto, shape: tuple[int, ...], name: str) -> Array:
    texts = [decoded(raw) for raw in tensor.string_data]
    if len(texts) != element_count(shape):
        raise FormatError(
            f"String tensor `{name}` has {len(texts)} elements; its shape {list(shape)} needs "
            f"{element_count(shape)}."
        )
    array = np.empty(len(texts), object)
    array[:] = texts
    return _frozen(array.reshape(shape))


def _frozen(array: Array) -> Array:
    array.flags.writeable = False
    return array


def _dimensions(shape: tuple[int, ...], name: str) -> tuple[int, ...]:
    bulk = element_count([dimension or 1 for dimension in shape])
    if len(shape) > RANK_MAX or bulk > ELEMENTS_MAX or any(d < 0 for d in shape):
        raise FormatError(
            f"Tensor `{name}` has the shape {list(shape[:RANK_MAX])}; it must have at most "
            f"{RANK_MAX} dimensions, none negative, and at most {ELEMENTS_MAX} elements."
        )
    return shape


def _check_size(name: str, dtype: DType, shape: tuple[int, ...], had_bytes: int) -> None:
    needed_bytes = packed_bytes(dtype, shape)
    if had_bytes != needed_bytes:
        raise FormatError(
            f"Tensor `{name}` holds {had_bytes} bytes; {dtype.value}{list(shape)} needs "
            f"{needed_bytes}."
        )
