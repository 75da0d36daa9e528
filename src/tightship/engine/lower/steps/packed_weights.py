"""Constants in the layouts of their kernels, each layout packed once."""

from collections.abc import Mapping, Sequence

from tightship._core import MemoryDesc
from tightship.engine.program.program import Operand, PackedWeight, Space
from tightship.graph import Constant, Derived, DType, Mapped
from tightship.graph.layout import size_bytes


def untransposed(constant: Constant, source: MemoryDesc) -> tuple[Constant, MemoryDesc]:
    """Return the file's matrix that a computed constant transposes, with strides to read it.

    Computing the transpose would hold it twice while it is packed, and hide that the original is
    shared.

    Args:
        constant: Any constant.
        source: Row-major layout of its bytes under the reader's dimensions.

    Returns:
        The original matrix and its layout, or the arguments if the constant is not a transpose.
    """
    stored = stored_matrix(constant)
    if stored is None:
        return constant, source
    rows, columns = constant.shape
    steps = {columns: 1, 1: rows}
    strides = [
        1 if length == 1 else steps.get(stride, 0)
        for length, stride in zip(source.dims, source.strides, strict=True)
    ]
    if 0 in strides:
        return constant, source
    return stored, MemoryDesc(source.dims, source.dtype, strides)


def stored_matrix(constant: Constant) -> Mapped | None:
    """Return the file's matrix, if the constant's recipe is to transpose it."""
    if not isinstance(constant, Derived) or len(constant.shape) != 2 or 1 in constant.shape:
        return None
    recipe, swaps = constant.recipe, constant.recipe == "transposed"  # as `lift_gemm` names it
    if isinstance(recipe, tuple) and recipe[:2] == ("Transpose", ""):
        swaps = dict(recipe[4]).get("perm", (1, 0)) == (1, 0)
    if not swaps or constant.dtype is not DType.FLOAT32:
        return None
    (stored,) = constant.sources
    return stored if isinstance(stored, Mapped) else None


class PackedWeights:
    """Weights of a program so far; an operand's slot is an index into `weights`.

    `before` has those of programs for other shapes, by name.
    """

    def __init__(self, before: Mapping[str, Sequence[PackedWeight]]) -> None:
        self._before = before
        self.weights: list[PackedWeight] = []
        self._layouts: dict[str, list[int]] = {}
        self._stored: dict[str, list[Operand]] = {}

    def packed(
        self, name: str, constant: Constant, source: MemoryDesc, desc: MemoryDesc
    ) -> Operand:
        """Pack a constant into a layout, once for all readers of that layout.

        A matrix that is the transpose of one in the file is packed from there.
        """
        stored, source = untransposed(constant, source)
        index = self._index(PackedWeight(name, stored, desc.size_bytes, source, desc))
        return Operand(name, Space.WEIGHTS, index, constant.dtype, constant.shape, desc)

    def adopted(self, weight: PackedWeight) -> int:
        """Return the index of a weight that another program packs, added unless there is one."""
        if weight.source is not None:
            return self._index(weight)
        for index, held in enumerate(self.weights):
            if held.name == weight.name and held.constant is weight.constant and not held.source:
                return index
        self.weights.append(weight)
        return len(self.weights) - 1

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

    def stored(self, name: str, constants: Sequence[Constant]) -> list[Operand]:
        """Add the sources of a constant in their file's layout, once for all its readers."""
        if name not in self._stored:
            self._stored[name] = [self.row_major(name, each, None) for each in constants]
        return self._stored[name]

    def row_major(self, name: str, constant: Constant, desc: MemoryDesc | None) -> Operand:
        """Add a constant in its file's layout; `desc` is that layout if oneDNN can describe it."""
        size = size_bytes(constant.dtype, constant.shape)
        self.weights.append(PackedWeight(name, constant, size))
        index = len(self.weights) - 1
        return Operand(name, Space.WEIGHTS, index, constant.dtype, constant.shape, desc)
