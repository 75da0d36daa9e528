"""Decoding of an inference request: a JSON header, then the raw bytes of some inputs."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from time import monotonic_ns
from typing import Any

from tightship.driver.oip.datatypes import type_of
from tightship.driver.oip.json_fields import Object, field, objects, optional, parse
from tightship.driver.oip.refusal import OipError
from tightship.graph import DType

RANK_MAX = 32
ELEMENTS_MAX = 1 << 48
"""Most elements of a tensor, with lengths of 0 counted as 1."""
TIMEOUT_US_MAX = 1 << 50
"""Longest timeout; longer ones are no limit."""
KNOWN_BYTES_MAX = 512
KNOWN_MAX = 256
"""Largest JSON header before a raw part that is kept once it was read, and how many are."""
REPEATED_BYTES_MAX = 4096
"""Size up to which decoded requests are cached: those with tensors in regions."""


@dataclass(frozen=True, slots=True)
class RegionPart:
    """Bytes of a named region."""

    region: str
    offset_bytes: int
    size_bytes: int


@dataclass(frozen=True, slots=True)
class InputTensor:
    """Input whose elements are a list, raw bytes, or in a region."""

    name: str
    dtype: DType
    shape: tuple[int, ...]
    content: list[Any] | memoryview | RegionPart


@dataclass(frozen=True, slots=True)
class RequestedOutput:
    """Requested output, and its destination: the header, the raw part, or a region."""

    name: str
    is_binary: bool
    region: RegionPart | None = None


@dataclass(frozen=True, slots=True)
class InferRequest:
    """Decoded inference request.

    Attributes:
        outputs: Requested outputs; empty for all.
        is_binary: Whether outputs are sent as raw bytes by default.
        timeout_s: Time limit from the arrival; None for none.
    """

    identifier: str
    inputs: tuple[InputTensor, ...]
    outputs: tuple[RequestedOutput, ...]
    is_binary: bool
    timeout_s: float | None

    def left_s(self, asked_ns: int) -> float | None:
        """Return the seconds left for a request that arrived at a time of `monotonic_ns`."""
        if self.timeout_s is None:
            return None
        return max(0.0, self.timeout_s - (monotonic_ns() - asked_ns) / 1e9)


def has_regions(request: InferRequest) -> bool:
    """Whether an input of a request is in a region."""
    return any(isinstance(each.content, RegionPart) for each in request.inputs)


def decode(body: bytes | bytearray | memoryview, header_bytes: int | None) -> InferRequest:
    """Decode a body.

    Args:
        body: Whole body.
        header_bytes: Size of the JSON header before the raw part; None if all is JSON.

    Raises:
        OipError: It is not a valid request.
    """
    whole = memoryview(body)
    if header_bytes is not None and not 0 <= header_bytes <= len(body):
        raise OipError(
            f"Inference-Header-Content-Length is {header_bytes}; the body has {len(body)} bytes"
        )
    if header_bytes is not None and header_bytes <= KNOWN_BYTES_MAX:
        header = _known_header(bytes(whole[:header_bytes]))
    else:
        header = _header(whole[:header_bytes])
    raw = _RawPart(whole[len(body) if header_bytes is None else header_bytes :])
    inputs = tuple([each.given(raw) for each in header.inputs])
    if raw.rest_bytes:
        raise OipError(
            f"unexpected additional input data of {raw.rest_bytes} bytes: the inputs say less"
        )
    return InferRequest(
        header.identifier, inputs, header.outputs, header.is_binary, header.timeout_s
    )


def _header(text: bytes | memoryview) -> "_Header":
    """Read a JSON header.

    Raises:
        OipError: It is not valid.
    """
    said = parse(text)
    parameters: Object = optional(said, "parameters", dict) or {}
    inputs = tuple([_input(each) for each in objects(said, "inputs")])
    is_binary = optional(parameters, "binary_data_output", bool) or False
    outputs = tuple([_output(each, is_binary=is_binary) for each in objects(said, "outputs")])
    timeout_s = timeout_s_of(optional(parameters, "timeout", int) or 0)
    return _Header(optional(said, "id", str) or "", inputs, outputs, is_binary, timeout_s)


_known_header = lru_cache(maxsize=KNOWN_MAX)(_header)


def timeout_s_of(timeout_us: int) -> float | None:
    """Convert a timeout to seconds; 0 and very long ones to None."""
    return timeout_us / 1e6 if timeout_us and timeout_us <= TIMEOUT_US_MAX else None


class _RawPart:
    """Bytes after the header, which the inputs take in order."""

    def __init__(self, rest: memoryview) -> None:
        self._rest = rest

    @property
    def rest_bytes(self) -> int:
        return len(self._rest)

    def take(self, name: str, size_bytes: int) -> memoryview:
        if not 0 <= size_bytes <= len(self._rest):
            raise OipError(
                f"input '{name}' has a binary_data_size of {size_bytes}; the body has "
                f"{len(self._rest)} bytes for it"
            )
        taken, self._rest = self._rest[:size_bytes], self._rest[size_bytes:]
        return taken


@dataclass(frozen=True, slots=True)
class _Input:
    """Input as the header has it; its elements, or the size of its part behind the header."""

    name: str
    dtype: DType
    shape: tuple[int, ...]
    content: list[Any] | RegionPart | int

    def given(self, raw: _RawPart) -> InputTensor:
        """Return the input with its elements.

        Raises:
            OipError: The raw part has not so many bytes.
        """
        content = self.content
        found = raw.take(self.name, content) if isinstance(content, int) else content
        return InputTensor(self.name, self.dtype, self.shape, found)


@dataclass(frozen=True, slots=True)
class _Header:
    """JSON header of a request."""

    identifier: str
    inputs: tuple[_Input, ...]
    outputs: tuple[RequestedOutput, ...]
    is_binary: bool
    timeout_s: float | None


def _input(entry: Object) -> _Input:
    name = field(entry, "name", str)
    parameters: Object = optional(entry, "parameters", dict) or {}
    data = optional(entry, "data", list)
    raw_bytes = optional(parameters, "binary_data_size", int)
    part = _region_part(parameters)
    if sum(each is not None for each in (data, raw_bytes, part)) != 1:
        raise OipError(
            "Input must set only one of the following fields: 'data', 'binary_data_size' in "
            f"'parameters', 'shared_memory_region' in 'parameters'. Input '{name}' does not"
        )
    content: Any = next(each for each in (data, raw_bytes, part) if each is not None)
    shape = checked_shape(name, field(entry, "shape", list))
    dtype = type_of(field(entry, "datatype", str))
    return _Input(name, dtype, shape, content)


def _output(entry: Object, *, is_binary: bool) -> RequestedOutput:
    name = field(entry, "name", str)
    parameters: Object = optional(entry, "parameters", dict) or {}
    if parameters.get("classification"):
        raise OipError(f"classification is not supported; output '{name}' asks for it")
    asked = optional(parameters, "binary_data", bool)
    part = _region_part(parameters)
    if part is not None and asked:
        raise OipError(f"output '{name}' cannot set both 'shared_memory_region' and 'binary_data'")
    return RequestedOutput(name, is_binary if asked is None else asked, part)


def checked_shape(name: str, shape: Sequence[int]) -> tuple[int, ...]:
    """Check and return the shape of an input.

    Raises:
        OipError: It is not a valid shape.
    """
    if len(shape) > RANK_MAX or any(type(each) is not int or each < 0 for each in shape):
        raise OipError(
            f"Unable to parse 'shape': that of input '{name}' must be at most {RANK_MAX} integers "
            "that are not negative"
        )
    if math.prod(max(1, each) for each in shape) > ELEMENTS_MAX:
        raise OipError(f"Unable to parse 'shape': that of input '{name}' is too large")
    return tuple(shape)


def _region_part(parameters: Object) -> RegionPart | None:
    region = optional(parameters, "shared_memory_region", str)
    if region is None:
        return None
    size_bytes = field(parameters, "shared_memory_byte_size", int)
    return RegionPart(region, optional(parameters, "shared_memory_offset", int) or 0, size_bytes)
