"""Conversion between arrays and their form in messages: raw bytes, or JSON lists."""

import itertools
import struct
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tightship.driver.oip.datatypes import NAMES
from tightship.driver.oip.refusal import OipError
from tightship.driver.oip.regions import check_input_bytes
from tightship.graph import DType, element_count, size_bytes
from tightship.graph.texts import decoded, encoded, is_utf8

Array = NDArray[Any]
Buffer = bytes | bytearray | memoryview

BINARY_ONLY = frozenset({DType.FLOAT16, DType.BFLOAT16})
_LENGTH = struct.Struct("<I")


def from_bytes(model: str, name: str, dtype: DType, shape: tuple[int, ...], raw: Buffer) -> Array:
    """Convert row-major little-endian bytes to an array, in place if aligned.

    Raises:
        OipError, RegionError: The size does not match the shape, or a string is cut short.
    """
    if dtype is DType.STRING:
        return _strings(name, shape, memoryview(raw))
    check_input_bytes(model, name, size_bytes(dtype, shape), len(raw))
    if dtype is DType.BOOL:
        flags: Array = np.frombuffer(raw, np.uint8) != 0
        return flags.reshape(shape)
    array = np.frombuffer(raw, dtype.numpy).reshape(shape)
    return array if array.flags.aligned else array.copy()


def from_list(name: str, dtype: DType, shape: tuple[int, ...], data: list[Any]) -> Array:
    """Convert a list, flat or nested like the shape, to an array.

    Raises:
        OipError: The count does not match the shape, or an element is not of the type.
    """
    check_json_type(name, dtype)
    flat = list(_flat(data, len(shape)))
    check_element_count(name, shape, len(flat))
    _check_elements(name, dtype, flat)
    array = np.empty(len(flat), dtype.numpy)
    try:
        array[:] = flat
    except OverflowError:
        raise overflow_error(name, NAMES[dtype]) from None
    return array.reshape(shape)


def check_json_type(name: str, dtype: DType) -> None:
    """Check that elements of a type can be sent as JSON.

    Raises:
        OipError: They cannot.
    """
    if dtype in BINARY_ONLY:
        raise OipError(
            f"sending {NAMES[dtype]} data via JSON is not supported. Please use the binary data "
            f"format for input '{name}'"
        )


def check_element_count(name: str, shape: tuple[int, ...], count: int) -> None:
    """Check that an input has as many elements as its shape says.

    Raises:
        OipError: It has another number.
    """
    if count != element_count(shape):
        raise OipError(
            f"Unable to parse 'data': Shape does not match true shape of 'data' field for input "
            f"'{name}': {element_count(shape)} elements are needed, {count} were given"
        )


def type_error(name: str, dtype: DType) -> OipError:
    """Return the refusal of an element that is not of the type of its input."""
    return OipError(
        f"Unable to parse 'data': attempt to access JSON element of input '{name}' "
        f"that is not {NAMES[dtype]}"
    )


def overflow_error(name: str, kind: str) -> OipError:
    """Return the refusal of an element that is out of the range of its type."""
    return OipError(
        f"Unable to parse 'data': input '{name}' has an element that {kind} cannot hold"
    )


def to_bytes(array: Array, dtype: DType) -> memoryview:
    """Convert an array to row-major little-endian bytes; each string follows its length."""
    if dtype is DType.STRING:
        return memoryview(b"".join(counted(encoded(each)) for each in array.reshape(-1)))
    return np.ascontiguousarray(array).reshape(-1).view(np.uint8).data


def to_list(name: str, array: Array, dtype: DType) -> list[Any]:
    """Return the elements of an array in row-major order.

    Raises:
        OipError: JSON cannot represent the type, or a string that is not UTF-8.
    """
    if dtype in BINARY_ONLY:
        raise OipError(
            f"sending {NAMES[dtype]} data via JSON is not supported. Please use the binary data "
            f"format for output '{name}'"
        )
    flat = array.reshape(-1)
    if dtype is DType.STRING and not all(map(is_utf8, flat)):
        raise OipError(
            f"output '{name}' has an element that is not UTF-8, which JSON cannot hold. Please "
            "request binary data for it (`binary_data`)"
        )
    return list(flat.tolist())


def _check_elements(name: str, dtype: DType, flat: list[Any]) -> None:
    wanted: tuple[type, ...] = (int,)
    if dtype is DType.STRING:
        wanted = (str,)
    elif dtype is DType.BOOL:
        wanted = (bool,)
    elif dtype.numpy.kind == "f":
        wanted = (int, float)
    is_typed = all(type(each) in wanted for each in flat)
    if not is_typed or (dtype is DType.STRING and not all(map(is_utf8, flat))):
        raise type_error(name, dtype)


def _flat(data: list[Any], depth: int) -> Iterator[Any]:
    """Iterate over nested lists; a list deeper than `depth` is an element."""
    if depth > 1 and any(isinstance(each, list) for each in data):
        inner = (_flat(each, depth - 1) if isinstance(each, list) else [each] for each in data)
        return itertools.chain.from_iterable(inner)
    return iter(data)


def _strings(name: str, shape: tuple[int, ...], raw: memoryview) -> Array:
    found: list[str] = []
    at = 0
    while at < len(raw):
        start = at + _LENGTH.size
        end = start + _LENGTH.unpack(raw[at:start])[0] if start <= len(raw) else len(raw) + 1
        if end > len(raw):
            raise OipError(
                f"incomplete string data for inference input '{name}': an element of {len(raw)} "
                f"bytes ends at {end}"
            )
        found.append(decoded(raw[start:end]))
        at = end
    if len(found) != element_count(shape):
        raise OipError(
            f"expected {element_count(shape)} string elements for inference input '{name}', "
            f"got {len(found)}"
        )
    array = np.empty(len(found), object)
    array[:] = found
    return array.reshape(shape)


def counted(element: bytes) -> bytes:
    """Return a string in the format of raw contents: after its length."""
    return _LENGTH.pack(len(element)) + element
