"""Reads tensors of TensorFlow Lite models, and reads and writes `OfflineMemoryAllocation` metadata.

The metadata is a buffer of int32: a version, the subgraph's index, the number of tensors, and for
each tensor its offset in the arena, or -1 if the interpreter is to choose one.
"""

import struct
from dataclasses import dataclass
from math import prod
from pathlib import Path

import numpy as np

from tightship.atomic_file import write_bytes
from tightship.errors import FormatError, InputError, PlanError
from tightship.planner.format.flatbuffer import Bytes, Table
from tightship.planner.format.tflite_writer import with_metadata
from tightship.planner.problem import Int64Array, Problem

IDENTIFIER = b"TFL3"
METADATA = "OfflineMemoryAllocation"
UNPLANNED = -1
ALIGNMENT = 16
"""Alignment of tensors in the arena of TensorFlow Lite Micro, in bytes."""

SUBGRAPHS, BUFFERS, MODEL_METADATA = 2, 4, 6
TENSORS, INPUTS, OUTPUTS, OPERATORS = 0, 1, 2, 3
SHAPE, TYPE, BUFFER, NAME, IS_VARIABLE, SIGNATURE = 0, 1, 2, 3, 5, 7
OPERATOR_INPUTS, OPERATOR_OUTPUTS, INTERMEDIATES = 1, 2, 8
DATA, DATA_OFFSET, METADATA_NAME, METADATA_BUFFER = 0, 1, 0, 1

BITS = {0: 32, 1: 16, 2: 32, 3: 8, 4: 64, 6: 8, 7: 16, 8: 64, 9: 8, 10: 64, 11: 128, 12: 64,
        15: 32, 16: 16, 17: 4, 18: 16}  # fmt: skip
"""Bits of an element by its type's number; strings, resources and variants have no fixed size."""


@dataclass(frozen=True, slots=True)
class TfliteTensors:
    """The tensors of a model's first subgraph that live in the arena.

    Attributes:
        problem: A buffer for each tensor.
        tensor: The index in the subgraph of each buffer's tensor.
        offset_bytes: Offsets of the metadata, -1 for tensors that the interpreter places; None
            without metadata.
    """

    problem: Problem
    tensor: tuple[int, ...]
    offset_bytes: Int64Array | None


def read_tflite(path: Path, *, capacity_bytes: int | None = None) -> TfliteTensors:
    """Read the tensors that the interpreter places, which are neither constants nor variables.

    A tensor lives from the operator that writes it, or from the first if it is an input, to the
    last that reads it, or to the end if it is an output.

    Args:
        path: The model.
        capacity_bytes: Capacity of the problem; None sets no limit.

    Raises:
        FormatError: The file is not a model, is cut or damaged, or a tensor has a size that
            depends on data. The message names the tensor or the byte.
        OSError: The file cannot be read.
    """
    model = _model(path)
    subgraph = _subgraph(model)
    tensors = subgraph.tables(TENSORS)
    spans = _lifetimes(path, subgraph, len(tensors))
    buffers = model.tables(BUFFERS)
    # A buffer with data, inline or outside the flatbuffer (offsets 0 and 1 mean none), is a
    # constant.
    constant = [b.vector(DATA, 1)[1] > 0 or b.number(DATA_OFFSET, "Q") > 1 for b in buffers]
    placed = tuple(
        index
        for index, tensor in enumerate(tensors)
        if index in spans
        and not tensor.number(IS_VARIABLE, "B")
        and not _is_constant(path, tensor, constant)
    )
    try:
        problem = Problem(
            np.array([_size_bytes(path, tensors[index], index) for index in placed], np.int64),
            np.array([spans[index][0] for index in placed], np.int64),
            np.array([spans[index][1] for index in placed], np.int64),
            np.full(len(placed), ALIGNMENT, np.int64),
            tuple(tensors[index].text(NAME) or f"tensor {index}" for index in placed),
            capacity_bytes,
        )
    except PlanError as error:
        raise FormatError(f"`{path}`: {error}") from error
    offsets = _offsets(path, model, len(tensors))
    if offsets is None:
        return TfliteTensors(problem, placed, None)
    return TfliteTensors(problem, placed, np.array([offsets[i] for i in placed], np.int64))


def write_tflite(
    path: Path, source: Path, tensors: TfliteTensors, offset_bytes: Int64Array
) -> None:
    """Write a model with `OfflineMemoryAllocation` metadata for these offsets.

    The rest of the model is copied from `source`.

    Args:
        path: The file to write.
        source: The model.
        tensors: Its tensors, as `read_tflite` returns them.
        offset_bytes: Offset of each of these tensors; shape (n,).

    Raises:
        FormatError: `source` is not a model.
        InputError: An offset does not fit the format's 31 bits.
        OSError: A file cannot be read or written; an older file is then untouched.
    """
    if offset_bytes.max(initial=0) >= 2**31:
        raise InputError(
            f"An offset is {offset_bytes.max()} bytes; TensorFlow Lite holds offsets below {2**31}."
        )
    model = _model(source)
    count = len(_subgraph(model).tables(TENSORS))
    offset_of = dict(zip(tensors.tensor, offset_bytes.tolist(), strict=True))
    offsets = [offset_of.get(index, UNPLANNED) for index in range(count)]
    payload = struct.pack(f"<{3 + count}i", 0, 0, count, *offsets)
    write_bytes(path, with_metadata(model, METADATA, payload))


def _model(path: Path) -> Table:
    file = Bytes(str(path), path.read_bytes())
    if file.data[4:8] != IDENTIFIER:
        raise FormatError(f"`{path}` is not a TensorFlow Lite model: bytes 4 to 8 must be `TFL3`.")
    return Table(file, file.follow(0))


def _subgraph(model: Table) -> Table:
    subgraphs = model.tables(SUBGRAPHS)
    if not subgraphs:
        raise FormatError(f"`{model.file.name}` has no subgraph.")
    return subgraphs[0]


def _lifetimes(path: Path, subgraph: Table, count: int) -> dict[int, tuple[int, int]]:
    """Return steps `[start, stop)` of each tensor that an operator, an input or an output names."""
    operators = subgraph.tables(OPERATORS)
    uses = [(0, index) for index in subgraph.integers(INPUTS)]
    for step, operator in enumerate(operators):
        for field in (OPERATOR_INPUTS, OPERATOR_OUTPUTS, INTERMEDIATES):
            uses.extend((step, index) for index in operator.integers(field) if index >= 0)
    uses.extend((max(0, len(operators) - 1), index) for index in subgraph.integers(OUTPUTS))
    spans: dict[int, tuple[int, int]] = {}
    for step, index in uses:
        if not 0 <= index < count:
            raise FormatError(
                f"`{path}`: step {step} names tensor {index}; the subgraph has {count}."
            )
        start, stop = spans.get(index, (step, step + 1))
        spans[index] = start, max(stop, step + 1)
    return spans


def _is_constant(path: Path, tensor: Table, constant: list[bool]) -> bool:
    buffer = tensor.number(BUFFER)
    if buffer >= max(1, len(constant)):
        raise FormatError(
            f"`{path}`: tensor `{tensor.text(NAME)}` is in buffer {buffer}; there are "
            f"{len(constant)}."
        )
    return bool(constant) and constant[buffer]


def _size_bytes(path: Path, tensor: Table, index: int) -> int:
    name, kind, shape = tensor.text(NAME), tensor.number(TYPE, "b"), tensor.integers(SHAPE)
    if kind not in BITS:
        raise FormatError(
            f"`{path}`: tensor {index} `{name}` has type {kind}, whose size depends on data."
        )
    if min((*shape, *tensor.integers(SIGNATURE)), default=0) < 0:
        raise FormatError(
            f"`{path}`: tensor {index} `{name}` has an unknown length. Export the model with fixed "
            "shapes."
        )
    return -(-prod(shape) * BITS[kind] // 8)


def _offsets(path: Path, model: Table, count: int) -> tuple[int, ...] | None:
    """Read the offset of each tensor from the metadata; None if there is none."""
    for metadata in model.tables(MODEL_METADATA):
        if metadata.text(METADATA_NAME) == METADATA:
            break
    else:
        return None
    buffers, number = model.tables(BUFFERS), metadata.number(METADATA_BUFFER)
    if number >= len(buffers):
        raise FormatError(f"`{path}`: `{METADATA}` is in buffer {number} of {len(buffers)}.")
    start, size = buffers[number].vector(DATA, 1)
    words = struct.unpack_from(f"<{size // 4}i", model.file.data, start)
    if len(words) < 3 or words[2] != count or len(words) < 3 + count:
        raise FormatError(
            f"`{path}`: `{METADATA}` has {size} bytes for "
            f"{words[2] if len(words) > 2 else 0} tensors; the subgraph has {count}."
        )
    if words[1] != 0:
        raise FormatError(f"`{path}`: `{METADATA}` is for subgraph {words[1]}, not the first.")
    return words[3 : 3 + count]
