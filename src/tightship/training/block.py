"""Allocates the memory block of a training step: tensors that stay between runs, then the arena."""

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from tightship._core import CommittedRange
from tightship.engine.program.program import PackedWeight
from tightship.engine.weights.allocation import ranged
from tightship.engine.weights.pack import Packer
from tightship.engine.weights.weight_store import aligned_offsets
from tightship.graph import Constant, size_bytes

Array = NDArray[np.generic]


class StateTensors:
    """Tensors that stay between runs, one after another: sizes, offsets and initial values."""

    def __init__(self, constants: Mapping[str, Constant]) -> None:
        self.tensors = [
            PackedWeight(name, constant, size_bytes(constant.dtype, constant.shape))
            for name, constant in constants.items()
        ]
        self.offsets, self.size_bytes = aligned_offsets(self.tensors)


class Block:
    """The memory of a training step.

    Attributes:
        size_bytes: Size of the block.
        arena: The part after the tensors that stay.
        tensors: The tensors that stay, by name; a reference to one keeps the memory alive.
    """

    def __init__(self, held: StateTensors, arena_bytes: int) -> None:
        """Allocate the block and fill it with the tensors' initial values.

        Raises:
            OutOfMemoryError: The system refuses the memory.
        """
        self.size_bytes = held.size_bytes + arena_bytes
        self._range = ranged(CommittedRange, self.size_bytes, self.size_bytes)
        self.arena = Part(self._range, held.size_bytes, arena_bytes)
        self.tensors: dict[str, Array] = {}
        packer, memory = Packer(np.empty(0, np.uint8)), self._range.array()
        for weight, offset in zip(held.tensors, held.offsets, strict=True):
            room = memory[offset : offset + weight.size_bytes]
            packer.pack(weight, room)
            constant = weight.constant
            self.tensors[weight.name] = room.view(constant.dtype.numpy).reshape(constant.shape)


class Part:
    """Bytes of a range, from an offset on."""

    def __init__(self, whole: CommittedRange, offset_bytes: int, size_bytes: int) -> None:
        self._whole, self._offset_bytes, self.size_bytes = whole, offset_bytes, size_bytes

    @property
    def address(self) -> int:
        """Address of the first byte."""
        return self._whole.address + self._offset_bytes

    def array(self) -> NDArray[np.uint8]:
        """Return the bytes."""
        return self._whole.array()[self._offset_bytes : self._offset_bytes + self.size_bytes]
