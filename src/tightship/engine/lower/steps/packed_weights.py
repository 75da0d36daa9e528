"""Constants in the layouts of their kernels, each layout packed once."""

from collections.abc import Mapping, Sequence

from tightship._core import MemoryDesc
from tightship.engine.lower.steps.transposed import untransposed
from tightship.engine.program.program import Operand, PackedWeight, Space
from tightship.graph import Constant, Derived
from tightship.graph.layout import size_bytes


class PackedWeights:
    """Weights of a program so far; an operand's slot is an index into `weights`.

    `before` has those of programs for other shapes, by name.
    """

    def __init__(self, before: Mapping[str, Sequence[PackedWeight]]) -> None:
        self._before = before
        self.weights: list[PackedWeight] = []
        self._layouts: dict[str, list[int]] = {}

    def packed(
        self, name: str, constant: Constant, source: MemoryDesc, desc: MemoryDesc
    ) -> Operand:
        """Pack a constant into a layout, once for all readers of that layout.

        A matrix that is the transpose of one in the file is packed from there.
        """
        stored, source = untransposed(constant, source)
        index = self._index(PackedWeight(name, stored, desc.size_bytes, source, desc))
        return Operand(name, Space.WEIGHTS, index, constant.dtype, constant.shape, desc)

    def _index(self, weight: PackedWeight) -> int:
        """Return the index of a weight with this layout, added if there is none."""
        desc, source = weight.desc, weight.source
        indices = self._layouts.setdefault(weight.name, [])
        for index in indices:
            packed = self.weights[index]
            if packed.desc == desc and packed.source == source:
                return index
        indices.append(len(self.weights))
        for packed in self._before.get(weight.name, ()):
            is_same = packed.constant is weight.constant and packed.source == source
            if is_same and packed.desc == desc:
                weight = packed
                break
        self.weights.append(weight)
        return indices[-1]

    def twin(self, index: int, name: str, constants: tuple[Constant, Constant]) -> int:
        """Return the index of a constant packed like the one at `index`, its counterpart.

        Args:
            index: Index of a packed constant.
            name: Name of the counterpart; the two `are_alike`.
            constants: The two, as in the graph.
        """
        weight, (first, second) = self.weights[index], constants
        if weight.constant is not first:
            assert isinstance(first, Derived), first
            assert isinstance(second, Derived), second
            second = second.sources[first.sources.index(weight.constant)]
        if weight.source is not None and name in self._layouts:
            return self._index(
                PackedWeight(name, second, weight.size_bytes, weight.source, weight.desc)
            )
        twin = self._packed_twin(weight, name)
        if twin is None or twin.constant is not second:
            twin = PackedWeight(name, second, weight.size_bytes, weight.source, weight.desc)
        self.weights.append(twin)
        if weight.source is not None:
            self._layouts[name] = [len(self.weights) - 1]
        return len(self.weights) - 1

    def _packed_twin(self, weight: PackedWeight, name: str) -> PackedWeight | None:
        """Find how programs for other shapes packed `name`, as the counterpart of `weight`."""
        for packed, twin in zip(
            self._before.get(weight.name, ()), self._before.get(name, ()), strict=False
        ):
            if packed is weight:
                return twin
        return None

    def are_alike(self, name: str, other: str) -> bool:
        """Whether programs for other shapes have packed two constants in the same layouts."""
        first, second = self._before.get(name, ()), self._before.get(other, ())
        if len(first) != len(second):
            return False
        for one, two in zip(first, second, strict=True):
            if one.desc != two.desc or one.source != two.source:
                return False
        return True

    def row_major(self, name: str, constant: Constant, desc: MemoryDesc | None) -> Operand:
        """Add a constant in its file's layout; `desc` is that layout if oneDNN can describe it."""
        size = size_bytes(constant.dtype, constant.shape)
        self.weights.append(PackedWeight(name, constant, size))
        index = len(self.weights) - 1
        return Operand(name, Space.WEIGHTS, index, constant.dtype, constant.shape, desc)
