"""Constants as kernels want them, each layout of one packed once."""

from collections.abc import Mapping, Sequence

from tightship._core import MemoryDesc
from tightship.engine.lower.transposed import untransposed
from tightship.engine.program import Operand, PackedWeight, Space
from tightship.graph import Constant
from tightship.graph.layout import size_bytes


class PackedWeights:
    """The weights of a program so far; an operand's index is its place in `weights`.

    `before` are those of programs for other shapes, by name.
    """

    def __init__(self, before: Mapping[str, Sequence[PackedWeight]]) -> None:
        self._before = before
        self.weights: list[PackedWeight] = []
        self._layouts: dict[str, list[int]] = {}

    def packed(
        self, name: str, constant: Constant, source: MemoryDesc, desc: MemoryDesc
    ) -> Operand:
        """A constant packed into a layout, once for all who want the same.

        What is a transposed matrix of the file is packed from there.
        """
        shape = constant.shape
        constant, source = untransposed(constant, source)
        for index in self._layouts.get(name, ()):
            packed = self.weights[index]
            if packed.desc == desc and packed.source == source:
                return Operand(name, Space.WEIGHTS, index, constant.dtype, shape, desc)
        self._layouts.setdefault(name, []).append(len(self.weights))
        for packed in self._before.get(name, ()):
            if packed.constant is constant and packed.desc == desc and packed.source == source:
                return self._add(packed, desc)._replace(shape=shape)
        weight = PackedWeight(name, constant, desc.size_bytes, source, desc)
        return self._add(weight, desc)._replace(shape=shape)

    def row_major(self, name: str, constant: Constant, desc: MemoryDesc | None) -> Operand:
        """A constant as it lies in its file; `desc` is that layout where oneDNN knows it."""
        size = size_bytes(constant.dtype, constant.shape)
        return self._add(PackedWeight(name, constant, size), desc)

    def _add(self, weight: PackedWeight, desc: MemoryDesc | None) -> Operand:
        self.weights.append(weight)
        constant, index = weight.constant, len(self.weights) - 1
        return Operand(weight.name, Space.WEIGHTS, index, constant.dtype, constant.shape, desc)
