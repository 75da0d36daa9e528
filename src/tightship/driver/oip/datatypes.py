"""Names of element types in the protocol."""

from collections.abc import Mapping

from tightship.driver.oip.refusal import OipError
from tightship.graph import DType

NAMES: Mapping[DType, str] = {
    DType.BOOL: "BOOL",
    DType.UINT8: "UINT8",
    DType.UINT16: "UINT16",
    DType.UINT32: "UINT32",
    DType.UINT64: "UINT64",
    DType.INT8: "INT8",
    DType.INT16: "INT16",
    DType.INT32: "INT32",
    DType.INT64: "INT64",
    DType.FLOAT16: "FP16",
    DType.FLOAT32: "FP32",
    DType.FLOAT64: "FP64",
    DType.BFLOAT16: "BF16",
    DType.STRING: "BYTES",
}
TYPES: Mapping[str, DType] = {name: dtype for dtype, name in NAMES.items()}


def name_of(dtype: DType) -> str:
    """Return the protocol's name of a type.

    Raises:
        OipError: The protocol lacks the type.
    """
    if dtype not in NAMES:
        raise OipError(f"the protocol has no name for elements of type `{dtype.value}`")
    return NAMES[dtype]


def type_of(name: str) -> DType:
    """Return the type with this name in the protocol.

    Raises:
        OipError: The name is unknown.
    """
    if name not in TYPES:
        raise OipError(f"unknown data-type '{name}'; it must be one of {', '.join(TYPES)}")
    return TYPES[name]
