"""Encoding of an inference response: a JSON header, then the raw bytes of some outputs."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Generic, TypeVar

from tightship.driver.oip.datatypes import name_of
from tightship.driver.oip.tensors import Array, to_bytes, to_list
from tightship.graph import DType


@dataclass(frozen=True, slots=True)
class OutputTensor:
    """Output of a response; `array` is None if a region has it."""

    name: str
    dtype: DType
    shape: tuple[int, ...]
    array: Array | None
    is_binary: bool
    region_parameters: dict[str, Any]


@dataclass(frozen=True, slots=True)
class InferResponse:
    """Body in parts.

    Attributes:
        header_bytes: Size of the JSON header; None if all is JSON.
    """

    parts: tuple[bytes | memoryview, ...]
    header_bytes: int | None


def encode(
    model: str, version: str, identifier: str, outputs: Sequence[OutputTensor]
) -> InferResponse:
    """Encode a response; its raw parts refer to the arrays in place.

    Raises:
        OipError: JSON cannot represent an output.
    """
    if not identifier and all(each.is_binary and each.array is not None for each in outputs):
        return _raw_response(model, version, outputs)
    raw: list[memoryview] = []
    entries: list[dict[str, Any]] = []
    for output in outputs:
        entry: dict[str, Any] = {
            "name": output.name,
            "datatype": name_of(output.dtype),
            "shape": list(output.shape),
        }
        if output.array is None:
            entry["parameters"] = output.region_parameters
        elif output.is_binary:
            raw.append(to_bytes(output.array, output.dtype))
            entry["parameters"] = {"binary_data_size": raw[-1].nbytes}
        else:
            entry["data"] = to_list(output.name, output.array, output.dtype)
        entries.append(entry)
    said: dict[str, Any] = {"model_name": model, "model_version": version, "outputs": entries}
    if identifier:
        said = {"id": identifier, **said}
    header = json.dumps(said).encode()
    return InferResponse((header, *raw), len(header) if raw else None)


def _raw_response(model: str, version: str, outputs: Sequence[OutputTensor]) -> InferResponse:
    """Encode a response of raw parts alone, whose header is often that of one before."""
    raw = [to_bytes(each.array, each.dtype) for each in outputs if each.array is not None]
    sizes = tuple([each.nbytes for each in raw])
    header = _raw_header(
        model, version, tuple([(each.name, each.dtype, each.shape) for each in outputs]), sizes
    )
    return InferResponse((header, *raw), len(header) if raw else None)


@lru_cache(maxsize=256)
def _raw_header(
    model: str,
    version: str,
    outputs: tuple[tuple[str, DType, tuple[int, ...]], ...],
    sizes: tuple[int, ...],
) -> bytes:
    entries = [
        {
            "name": name,
            "datatype": name_of(dtype),
            "shape": list(shape),
            "parameters": {"binary_data_size": size},
        }
        for (name, dtype, shape), size in zip(outputs, sizes, strict=True)
    ]
    said = {"model_name": model, "model_version": version, "outputs": entries}
    return json.dumps(said).encode()


ANSWERS_MAX = 256

Outputs = tuple[OutputTensor, ...]
Answer = TypeVar("Answer")


class Answers(Generic[Answer]):
    """Replies whose outputs are all in regions, so that they hold no tensor."""

    def __init__(self) -> None:
        self._known: dict[int, tuple[Outputs, Answer]] = {}

    def find(self, outputs: Outputs) -> Answer | None:
        """Return the reply kept for these outputs, compared by identity."""
        found = self._known.get(id(outputs))
        return found[1] if found is not None and found[0] is outputs else None

    def keep(self, outputs: Outputs, answer: Answer) -> None:
        """Keep a reply, unless it holds a tensor."""
        if any(output.array is not None for output in outputs):
            return
        if len(self._known) >= ANSWERS_MAX:
            self._known.clear()
        self._known[id(outputs)] = (outputs, answer)
