"""Conversion of inferences from and to gRPC messages."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, TypeVar

import numpy as np

from tightship.driver.oip.datatypes import NAMES, name_of, type_of
from tightship.driver.oip.infer_request import (
    InferRequest,
    InputTensor,
    RegionPart,
    RequestedOutput,
    checked_shape,
    timeout_s_of,
)
from tightship.driver.oip.infer_response import OutputTensor
from tightship.driver.oip.refusal import OipError
from tightship.driver.oip.tensors import BINARY_ONLY, counted, to_bytes
from tightship.graph import DType

CONTENTS: Mapping[DType, str] = {
    DType.BOOL: "bool_contents",
    DType.INT8: "int_contents",
    DType.INT16: "int_contents",
    DType.INT32: "int_contents",
    DType.INT64: "int64_contents",
    DType.UINT8: "uint_contents",
    DType.UINT16: "uint_contents",
    DType.UINT32: "uint_contents",
    DType.UINT64: "uint64_contents",
    DType.FLOAT32: "fp32_contents",
    DType.FLOAT64: "fp64_contents",
    DType.STRING: "bytes_contents",
}
"""Field with the elements of a type, if they are not sent raw."""

Message = Any
Value = TypeVar("Value", str, int)


def request_of(message: Message, raw: Sequence[memoryview]) -> InferRequest:
    """Convert a `ModelInferRequest`.

    Raises:
        OipError: It is not a valid request.
    """
    left = iter(raw)
    inputs = tuple(_input(tensor, left, has_raw=bool(raw)) for tensor in message.inputs)
    rest = sum(1 for _ in left)
    if rest:
        raise OipError(
            f"expected number of raw input contents to be {len(raw) - rest} for model "
            f"'{message.model_name}', got {len(raw)}"
        )
    outputs = tuple(_requested(each) for each in message.outputs)
    timeout_us = _parameter("request", message.parameters, "timeout", "int64_param", 0)
    return InferRequest(
        message.id, inputs, outputs, is_binary=True, timeout_s=timeout_s_of(timeout_us)
    )


def _input(tensor: Message, raw: Iterator[memoryview], *, has_raw: bool) -> InputTensor:
    name, dtype = tensor.name, type_of(tensor.datatype)
    content: memoryview | RegionPart | None = _region_part(name, tensor.parameters)
    if content is not None:
        if tensor.HasField("contents"):
            raise OipError(
                f"unexpected 'contents' for input '{name}', as its 'shared_memory_region' is set"
            )
    elif not has_raw:
        content = _contents(name, dtype, tensor.contents)
    elif tensor.HasField("contents"):
        raise OipError(
            f"contents field must not be specified when using raw_input_contents for '{name}'"
        )
    else:
        content = next(raw, None)
        if content is None:
            raise OipError(f"raw_input_contents has nothing for input '{name}'")
    return InputTensor(name, dtype, checked_shape(name, tensor.shape), content)


def _contents(name: str, dtype: DType, contents: Message) -> memoryview:
    if dtype in BINARY_ONLY:
        raise OipError(f"{NAMES[dtype]} comes in raw_input_contents only; input '{name}' does not")
    elements = getattr(contents, CONTENTS[dtype])
    if dtype is DType.STRING:
        return memoryview(b"".join(map(counted, elements)))
    try:
        array = np.fromiter(elements, dtype.numpy, len(elements))
    except OverflowError:
        raise OipError(f"input '{name}' has an element that {NAMES[dtype]} cannot hold") from None
    return array.view(np.uint8).data


def _requested(output: Message) -> RequestedOutput:
    name, parameters = output.name, output.parameters
    if "classification" in parameters:
        raise OipError(f"classification is not supported; output '{name}' asks for it")
    return RequestedOutput(name, is_binary=True, region=_region_part(name, parameters))


def _region_part(name: str, parameters: Message) -> RegionPart | None:
    region = _parameter(name, parameters, "shared_memory_region", "string_param", "")
    offset = _parameter(name, parameters, "shared_memory_offset", "int64_param", 0)
    size = _parameter(name, parameters, "shared_memory_byte_size", "int64_param", 0)
    if not region:
        if offset or size:
            raise OipError(
                f"'shared_memory_offset' or 'shared_memory_byte_size' is set for tensor '{name}' "
                "without 'shared_memory_region'"
            )
        return None
    if not size:
        raise OipError(
            f"'shared_memory_byte_size' must be set along with 'shared_memory_region' for tensor "
            f"'{name}'"
        )
    return RegionPart(region, offset, size)


def _parameter(name: str, parameters: Message, key: str, kind: str, default: Value) -> Value:
    if key not in parameters:
        return default
    value = parameters[key]
    if value.WhichOneof("parameter_choice") != kind:
        raise OipError(
            f"invalid value type for '{key}' parameter for tensor '{name}', expected {kind}"
        )
    found: Value = getattr(value, kind)
    return found


OutputForm = tuple[str, DType, tuple[int, ...], tuple[tuple[str, str | int], ...]]
"""Name, type and shape of an output, and the parameters that say where a region has it."""


def form_of(output: OutputTensor) -> OutputForm:
    """Return what a response says of an output besides its contents."""
    return output.name, output.dtype, output.shape, tuple(output.region_parameters.items())


def raw_of(outputs: Sequence[OutputTensor]) -> list[bytes | memoryview]:
    """Return the raw contents of each output, empty if a region has it."""
    return [b"" if each.array is None else to_bytes(each.array, each.dtype) for each in outputs]


def fill(message: Message, outputs: Sequence[OutputForm]) -> None:
    """Describe outputs in a `ModelInferResponse`."""
    for name, dtype, shape, parameters in outputs:
        entry = message.outputs.add(name=name, datatype=name_of(dtype), shape=shape)
        for key, value in parameters:
            if isinstance(value, str):
                entry.parameters[key].string_param = value
            else:
                entry.parameters[key].int64_param = value
