"""Encoding of an inference response: a JSON header, then the raw bytes of some outputs."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
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
