"""Element types of arrays as NNAPI names them, for models that are not built operand by operand."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import DTypeLike

from tightship.driver.rules.operand_type import OperandType, ValueType
from tightship.driver.rules.status import failure


def may_change(dtype: "np.dtype[Any]") -> bool:
    """Whether a client may write to a value while a model runs: what indexes nothing."""
    return dtype.kind == "f"


_TENSORS: Mapping[str, OperandType] = {
    "float32": OperandType.TENSOR_FLOAT32,
    "float16": OperandType.TENSOR_FLOAT16,
    "int32": OperandType.TENSOR_INT32,
    "bool": OperandType.TENSOR_BOOL8,
    "uint8": OperandType.TENSOR_QUANT8_ASYMM,
    "int8": OperandType.TENSOR_QUANT8_ASYMM_SIGNED,
    "uint16": OperandType.TENSOR_QUANT16_ASYMM,
    "int16": OperandType.TENSOR_QUANT16_SYMM,
}
_SCALARS: Mapping[str, OperandType] = {
    "float32": OperandType.FLOAT32,
    "float16": OperandType.FLOAT16,
    "int32": OperandType.INT32,
    "uint32": OperandType.UINT32,
    "bool": OperandType.BOOL,
}
_DTYPES = {kind: np.dtype(name) for table in (_TENSORS, _SCALARS) for name, kind in table.items()}
_UNSCALED = frozenset(["float32", "float16", "int32", "uint32", "bool"])


def value_type(dtype: DTypeLike, shape: Sequence[int], name: str) -> ValueType:
    """An array's type; small integers have scale 1.

    Raises:
        DriverError: GENERAL_FAILURE: NNAPI has no such type.
    """
    element = np.dtype(dtype).name
    kind = (_TENSORS if shape else _SCALARS).get(element)
    if kind is None:
        what = "tensor" if shape else "scalar"
        raise failure(
            f"`{name}` is a {what} of {element}; the driver has those of "
            f"{', '.join(_TENSORS if shape else _SCALARS)}. Cast it in the model."
        )
    return ValueType(kind, tuple(shape), 0.0 if element in _UNSCALED else 1.0)


def dtype_of(value: ValueType) -> np.dtype[np.generic]:
    """The elements of a value; bytes for what NumPy has no type for."""
    return _DTYPES.get(OperandType(value.operand_type), np.dtype(np.uint8))
