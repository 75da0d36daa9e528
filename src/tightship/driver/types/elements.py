"""NNAPI types of arrays: inputs and outputs of models that are not built of operands."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import DTypeLike

from tightship.driver.types.operand_type import OperandType, ValueType
from tightship.driver.types.status import failure


def may_change(dtype: "np.dtype[Any]") -> bool:
    """Whether a client may write to such a value during a run: only floats index nothing."""
    return dtype.kind == "f"


_TENSORS: dict[str, OperandType] = {
    "float32": OperandType.TENSOR_FLOAT32,
    "float16": OperandType.TENSOR_FLOAT16,
    "int32": OperandType.TENSOR_INT32,
    "bool": OperandType.TENSOR_BOOL8,
    "uint8": OperandType.TENSOR_QUANT8_ASYMM,
    "int8": OperandType.TENSOR_QUANT8_ASYMM_SIGNED,
    "uint16": OperandType.TENSOR_QUANT16_ASYMM,
    "int16": OperandType.TENSOR_QUANT16_SYMM,
}
_SCALARS: dict[str, OperandType] = {
    "float32": OperandType.FLOAT32,
    "float16": OperandType.FLOAT16,
    "int32": OperandType.INT32,
    "uint32": OperandType.UINT32,
    "bool": OperandType.BOOL,
}
_MORE_TENSORS = _TENSORS | {
    "int64": OperandType.TENSOR_INT64,
    "uint64": OperandType.TENSOR_UINT64,
    "float64": OperandType.TENSOR_FLOAT64,
    "uint32": OperandType.TENSOR_UINT32,
}
_MORE_SCALARS = _SCALARS | {
    "int64": OperandType.INT64,
    "uint64": OperandType.UINT64,
    "float64": OperandType.FLOAT64,
}
_DTYPES = {
    kind: np.dtype(name) for table in (_MORE_TENSORS, _MORE_SCALARS) for name, kind in table.items()
}
_DTYPES |= dict.fromkeys(
    (OperandType.TENSOR_QUANT8_SYMM, OperandType.TENSOR_QUANT8_SYMM_PER_CHANNEL), np.dtype(np.int8)
)
_SCALED = frozenset(["uint8", "int8", "uint16", "int16"])


def value_type(dtype: DTypeLike, shape: Sequence[int], name: str) -> ValueType:
    """Return the type of an array in a model of operands; quantized integers get scale 1.

    Raises:
        DriverError: GENERAL_FAILURE: NNAPI has no type for these elements.
    """
    return _found(_TENSORS if shape else _SCALARS, dtype, shape, name)


def end_type(dtype: DTypeLike, shape: Sequence[int], name: str) -> ValueType:
    """Return the type of an input or output of an ONNX model; it may be of the driver's extension.

    Raises:
        DriverError: GENERAL_FAILURE: neither NNAPI nor the extension has a type for these elements.
    """
    return _found(_MORE_TENSORS if shape else _MORE_SCALARS, dtype, shape, name)


def _found(
    kinds: Mapping[str, OperandType], dtype: DTypeLike, shape: Sequence[int], name: str
) -> ValueType:
    element = np.dtype(dtype).name
    kind = kinds.get(element)
    if kind is None:
        raise failure(
            f"`{name}` is a {'tensor' if shape else 'scalar'} of {element}; the driver supports "
            f"{', '.join(kinds)}. Cast it in the model."
        )
    return ValueType(kind, tuple(shape), 1.0 if element in _SCALED else 0.0)


def dtype_of(value: ValueType) -> np.dtype[np.generic]:
    """Return the NumPy type of a value's elements; `uint8` where NumPy has none."""
    return _DTYPES.get(OperandType(value.operand_type), np.dtype(np.uint8))
