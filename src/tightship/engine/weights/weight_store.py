"""Store of packed weights with one copy of each for all programs of a model."""

from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

import numpy as np
from numpy.typing import NDArray

from tightship._core import HostResource
from tightship.engine.program.program import PackedWeight
from tightship.engine.program.schedule import ALIGNMENT
from tightship.engine.weights.allocation import allocate
from tightship.graph.layout import DType

if TYPE_CHECKING:
    from tightship.graph import Constant

MAPPED_BYTES_MIN = 64 << 10
"""Least bytes of a weight that is not copied."""
MAPPED_ALIGNMENT = 32
"""Alignment of weights in files whose weights kernels read; they load them unaligned."""

Kind = tuple[DType, int]
"""Type of a constant's elements, and the number of its axes."""
Progress = Callable[[int, int], None]
"""Function called with the bytes of weights packed so far and in all."""


class PinnedBytes(Protocol):
    """Bytes that stay at their address as long as this object lives."""

    @property
    def address(self) -> int:
        """Address of the first byte."""

    def array(self) -> NDArray[np.uint8]:
        """Return the bytes."""


@dataclass(frozen=True, slots=True, eq=False)
class PackedCopy:
    """Packed weight in memory."""

    weight: PackedWeight
    block: PinnedBytes
    offset_bytes: int

    @property
    def address(self) -> int:
        """Address of its first byte."""
        return self.block.address + self.offset_bytes

    def array(self) -> NDArray[np.uint8]:
        """Return its bytes, which keep the block alive."""
        return self.block.array()[self.offset_bytes : self.offset_bytes + self.weight.size_bytes]


@dataclass(frozen=True, slots=True, eq=False)
class MappedBytes:
    """Bytes of a file, mapped read-only and shared by all processes that map it."""

    content: NDArray[np.uint8]

    @property
    def address(self) -> int:
        """Address of the first byte."""
        return int(self.content.ctypes.data)

    def array(self) -> NDArray[np.uint8]:
        """Return the bytes, which keep the mapping alive."""
        return self.content


def mapped_copy(weight: PackedWeight) -> PackedCopy | None:
    """Return a weight where a file has it; None if it is small, or packed otherwise.

    Kernels may read a few bytes behind a weight, which the file has to have. Small ones are mapped
    too where a file was made of them.
    """
    from tightship.graph import Mapped  # a prepared model packs nothing
    from tightship.graph.row_by_row import RowByRow

    constant, least = weight.constant, MAPPED_BYTES_MIN
    if isinstance(constant, RowByRow) and constant.made is not None:
        constant, least = constant.made, 0
    if weight.desc is not None or not isinstance(constant, Mapped) or not constant.file.is_run:
        return None
    offset, size = constant.offset_bytes, weight.size_bytes
    if size < least or offset % MAPPED_ALIGNMENT:
        return None
    if offset + size + ALIGNMENT > constant.file.size_bytes:
        return None
    content = np.frombuffer(constant.file.bytes_at(offset, size), np.uint8)
    return PackedCopy(weight, MappedBytes(content), 0)


@dataclass(slots=True, eq=False)
class WeightStore:
    """Packed copies by constant and layout; programs hold those that they use.

    Not thread-safe: programs must be added one at a time.
    """

    resource: HostResource
    _copies: list[PackedCopy] = field(default_factory=list)
    _by_identity: dict[int, list[PackedCopy]] = field(default_factory=dict)
    _by_key: dict[Hashable, list[PackedCopy]] = field(default_factory=dict)
    _without_key: dict[Kind, list[PackedCopy]] = field(default_factory=dict)
    """Copies that are not in `_by_key` yet: keys of a kind are computed when one is looked for."""

    def missing(self, weights: Iterable[PackedWeight]) -> list[PackedWeight]:
        """List the weights that have no copy."""
        return [weight for weight in weights if self._find(weight) is None]

    def has_constant(self, constant: "Constant") -> bool:
        """Whether a copy of a constant exists in any layout."""
        return id(constant) in self._by_identity or bool(self._equal(constant))

    def copies(
        self, weights: Sequence[PackedWeight], progress: Progress | None = None
    ) -> tuple[PackedCopy, ...]:
        """Return a copy of each weight, in order; pack missing ones into one block.

        Raises:
            OutOfMemoryError: The block, or staging memory, cannot be allocated.
        """
        found = [self._find(weight) for weight in weights]
        if None in found:
            self._pack([w for w, copy in zip(weights, found, strict=True) if not copy], progress)
            found = [copy or self._find(w) for w, copy in zip(weights, found, strict=True)]
        assert None not in found
        return tuple([copy for copy in found if copy is not None])

    def adopt(self, copies: Iterable[PackedCopy]) -> None:
        """Add copies that another store made."""
        for copy in copies:
            self._add(copy)

    def copies_held(self) -> list[PackedCopy]:
        """List all copies."""
        return list(self._copies)

    def by_name(self) -> dict[str, list[PackedWeight]]:
        """Return the layouts that each constant is packed in."""
        found: dict[str, list[PackedWeight]] = {}
        for copy in self._copies:
            found.setdefault(copy.weight.name, []).append(copy.weight)
        return found

    def keep(self, used: Iterable[PackedCopy]) -> None:
        """Release all copies except these."""
        kept = {id(copy) for copy in used}
        staying = [copy for copy in self._copies if id(copy) in kept]
        for index in (self._copies, self._by_identity, self._by_key, self._without_key):
            index.clear()
        self.adopt(staying)

    def _add(self, copy: PackedCopy) -> None:
        self._copies.append(copy)
        self._without_key.setdefault(_kind(copy.weight.constant), []).append(copy)
        self._by_identity.setdefault(id(copy.weight.constant), []).append(copy)

    def _pack(self, weights: Sequence[PackedWeight], progress: Progress | None) -> None:
        """Pack weights into one block; those that a file has as they are stay there."""
        mapped = {id(weight): mapped_copy(weight) for weight in weights}
        for copy in mapped.values():
            if copy is not None:
                self._add(copy)
        weights = [weight for weight in weights if mapped[id(weight)] is None]
        from tightship.engine.weights.pack import pack_each  # a prepared model packs nothing

        offsets, size = aligned_offsets(weights)
        block = allocate(self.resource, size, "the weights")
        copies = [PackedCopy(w, block, start) for w, start in zip(weights, offsets, strict=True)]
        pack_each(weights, lambda index: copies[index].array(), self.resource, progress)
        self.adopt(copies)

    def _find(self, weight: PackedWeight) -> PackedCopy | None:
        same = _like(weight, self._by_identity.get(id(weight.constant), ()))
        return same or _like(weight, self._equal(weight.constant))

    def _equal(self, constant: "Constant") -> Sequence[PackedCopy]:
        """Return copies of constants equal to one, as far as known without reading elements."""
        if not self._copies:
            return ()
        from tightship.graph.symbolic import constant_key

        for copy in self._without_key.pop(_kind(constant), ()):
            self._by_key.setdefault(constant_key(copy.weight.constant), []).append(copy)
        return self._by_key.get(constant_key(constant), ())


def _kind(constant: "Constant") -> Kind:
    """Return what equal constants have in common."""
    return constant.dtype, len(constant.shape)


def _like(weight: PackedWeight, copies: Iterable[PackedCopy]) -> PackedCopy | None:
    """Find the copy in a weight's layout."""
    for copy in copies:
        other = copy.weight
        if other is weight or (
            other.size_bytes == weight.size_bytes
            and other.desc == weight.desc
            and other.source == weight.source
        ):
            return copy
    return None


def aligned_offsets(weights: Iterable[PackedWeight]) -> tuple[tuple[int, ...], int]:
    """Return offsets of weights laid one after another, and their end."""
    offsets: list[int] = []
    end = 0
    for weight in weights:
        offsets.append(end)
        end += -(-weight.size_bytes // ALIGNMENT) * ALIGNMENT
    return tuple(offsets), end
