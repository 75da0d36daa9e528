"""Gathers rows of a table from where a product has it packed as weights.

The embedding of a language model is often both, and the largest of its weights.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from tightship._core import NativeKernel
from tightship.engine.lower.steps.relocated_work import relocated_work
from tightship.engine.lower.steps.strides import byte_strides
from tightship.engine.program.program import (
    Lowered,
    LoweredStep,
    NativeWork,
    Operand,
    PackedWeight,
    Space,
)
from tightship.graph import DType
from tightship.graph.symbolic import constant_key

ITEM_BYTES = 4


@dataclass(frozen=True, slots=True)
class _Packed:
    """Packed table: `index` among the weights, rows in a block, and strides in elements.

    Rows of a block are one element apart.
    """

    index: int
    block: int
    block_step: int
    column_step: int


def share_tables(lowered: Lowered) -> Lowered:
    """Remove tables that are packed for a product as well."""
    gathered = {
        operand.slot
        for step in lowered.steps
        if _is_gather(step)
        for operand in step.reads
        if operand.space is Space.WEIGHTS
    }
    for index in sorted(gathered, reverse=True):
        packed = _packed(lowered, index)
        if packed is not None:
            lowered = _without(lowered, index, packed)
    return lowered


def _packed(lowered: Lowered, index: int) -> _Packed | None:
    """Find another packed copy of a table whose readers all gather rows."""
    table = lowered.weights[index]
    shape = table.constant.shape
    if table.source is not None or table.constant.dtype is not DType.FLOAT32 or len(shape) != 2:
        return None
    readers = [step for step in lowered.steps if any(_is(o, index) for o in step.reads)]
    if not readers or not all(_gathers_rows(step, index, shape) for step in readers):
        return None
    key = constant_key(table.constant)
    for place, other in enumerate(lowered.weights):
        if place != index and other.constant.shape == shape and constant_key(other.constant) == key:
            found = _blocks(other, place, shape)
            if found is not None:
                return found
    return None


def _is(operand: Operand, index: int) -> bool:
    return operand.space is Space.WEIGHTS and operand.slot == index


def _is_gather(step: LoweredStep) -> bool:
    return step.operator == "Gather" and step.implementation == "gather"


def _gathers_rows(step: LoweredStep, index: int, shape: Sequence[int]) -> bool:
    """Whether a step can only be a Gather along the first axis of this matrix."""
    if not _is_gather(step) or not isinstance(step.work, NativeWork):
        return False
    data, indices, target = step.work.operands
    by_rows, by_columns = (*indices.shape, shape[1]), (shape[0], *indices.shape)
    return _is(data, index) and not _is(indices, index) and by_columns != by_rows == target.shape


def _blocks(weight: PackedWeight, place: int, shape: Sequence[int]) -> _Packed | None:
    """Describe a packed matrix; None unless steps along a row of the table are equal."""
    if weight.source is None or weight.desc is None or weight.desc.dtype != "float32":
        return None
    dims = enumerate(zip(weight.source.dims, weight.source.strides, strict=True))
    steps = {stride: axis for axis, (length, stride) in dims if length > 1}
    if set(steps) != {1, shape[1]}:
        return None
    row, column = steps[shape[1]], steps[1]
    strides = weight.desc.strides
    found = re.findall(r"(\d+)([a-z])", weight.desc.format)
    inner = [(int(length), ord(axis) - ord("a")) for length, axis in found]
    if [axis for _, axis in inner] == [row]:
        return _Packed(place, inner[0][0], strides[row], strides[column])
    if [axis for _, axis in inner] == [column, row]:
        (columns, _), (rows, _) = inner
        if strides[column] == columns * rows:
            return _Packed(place, rows, strides[row], rows)
    return None


def _without(lowered: Lowered, index: int, packed: _Packed) -> Lowered:
    """Remove a table; steps that gathered from it read the packed matrix."""

    def move(operand: Operand) -> Operand:
        if operand.space is not Space.WEIGHTS or operand.slot < index:
            return operand
        if operand.slot > index:
            return operand._replace(slot=operand.slot - 1)
        place = packed.index - (packed.index > index)
        return operand._replace(slot=place, desc=lowered.weights[packed.index].desc)

    def step_of(step: LoweredStep) -> LoweredStep:
        work = relocated_work(step.work, move)
        if any(_is(operand, index) for operand in step.reads):
            assert isinstance(work, NativeWork)
            work = work._replace(kernel=_kernel(step.name, work.operands, packed))
        return step._replace(reads=tuple(map(move, step.reads)), work=work)

    weights = (*lowered.weights[:index], *lowered.weights[index + 1 :])
    return lowered._replace(weights=weights, steps=tuple(map(step_of, lowered.steps)))


def _kernel(name: str, operands: Sequence[Operand], packed: _Packed) -> NativeKernel:
    data, indices, target = operands
    rows, columns = data.shape
    strides = byte_strides(indices)
    tuples = list(indices.shape)
    indexing = name, indices.dtype.itemsize, tuples, strides, [(rows, 0, ITEM_BYTES)]
    along = [0] * len(tuples) + [packed.column_step * ITEM_BYTES]
    walk = [*tuples, columns], along, [*strides, 0], byte_strides(target)
    blocks = packed.block, packed.block_step * ITEM_BYTES
    return NativeKernel.gather(ITEM_BYTES, indexing, walk, blocks)
