"""Packs constants into the layouts of their kernels, a chunk at a time."""

from collections.abc import Callable, Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from tightship._core import HostResource, MemoryDesc, Reorderer
from tightship.engine.lower.passes.affine import Scaled
from tightship.engine.program.program import PackedWeight
from tightship.engine.weights.allocation import allocate
from tightship.graph import Constant, Fill, Inline, Mapped, element_count
from tightship.graph.row_by_row import RowByRow

PIECE_BYTES = 1 << 20
"""Approximate limit of bytes of a constant that are held besides its packed copy."""

Bytes = NDArray[np.uint8]
Cut = tuple[int, int]
"""Elements `[start, stop)` of an axis."""


def pack_each(
    weights: Sequence[PackedWeight],
    rooms: Callable[[int], Bytes],
    resource: HostResource,
    progress: Callable[[int, int], None] | None,
) -> None:
    """Pack weights, the largest first, so that its staging meets the fewest packed copies.

    Args:
        weights: n weights.
        rooms: Function that returns the bytes to pack one into, by its place among them.
        resource: Resource that gives the staging memory.
        progress: Function called with the bytes of weights packed so far and in all.

    Raises:
        OutOfMemoryError: Staging memory cannot be allocated.
    """
    needed = staging_bytes(weights)
    staging = allocate(resource, needed, "a piece of a weight while it is packed")
    packer = Packer(staging.array()[:needed])
    done, total = 0, sum(weight.size_bytes for weight in weights)
    for index in sorted(range(len(weights)), key=lambda index: -weights[index].size_bytes):
        packer.pack(weights[index], rooms(index))
        done += weights[index].size_bytes
        if progress is not None:
            progress(done, total)


class Packer:
    """Packer of one constant after another.

    Only a chunk of a constant is held besides its packed copy, unless it must be computed whole;
    pages of its file are given back once used.
    """

    def __init__(self, staging: Bytes) -> None:
        """Use `staging` of at least `staging_bytes` of all weights to be packed."""
        self._staging = staging
        self._made: Reorderer | None = None

    @property
    def _reorderer(self) -> Reorderer:
        """The reorderer, which takes memory once there is something to reorder."""
        if self._made is None:
            self._made = Reorderer()
        return self._made

    def pack(self, weight: PackedWeight, room: Bytes) -> None:
        """Pack a constant into `room`, which has `weight.size_bytes` bytes."""
        constant = _in_pieces(weight.constant)
        if weight.source is None or weight.desc is None or _is_copy(weight):
            _copy(constant, room)
        else:
            pack = self._reorder_whole if _is_narrow(weight.source) else self._reorder
            pack(weight.source, weight.desc, constant, room)
        weight.constant.release()

    def _reorder_whole(
        self, source: MemoryDesc, desc: MemoryDesc, constant: Constant, room: Bytes
    ) -> None:
        """Reorder a constant at once: integers are packed with sums over all of them."""
        if isinstance(constant, Inline):
            held = np.ascontiguousarray(constant.value)
            self._reorderer.run(source, held.ctypes.data, desc, room.ctypes.data)
            return
        whole = self._staging[: source.size_bytes]
        _copy(constant, whole)
        self._reorderer.run(source, whole.ctypes.data, desc, room.ctypes.data)

    def _reorder(
        self, source: MemoryDesc, desc: MemoryDesc, constant: Constant, room: Bytes
    ) -> None:
        pieces = _Pieces(source, desc)
        for cuts in pieces.cuts():
            piece = _staged(constant, pieces.stored, cuts, self._staging)
            strides = [stride // piece.itemsize for stride in piece.strides]
            lengths = pieces.logical(piece.shape)
            target, offset = _part(desc, lengths, pieces.logical([start for start, _ in cuts]))
            self._reorderer.run(
                MemoryDesc(lengths, "float32", pieces.logical(strides)),
                piece.ctypes.data,
                target,
                room.ctypes.data + offset,
            )
            constant.release()


def staging_bytes(weights: Sequence[PackedWeight]) -> int:
    """Return the bytes of the largest chunk of any weight."""
    return max((_staged_bytes(w.constant, w.source, w.desc) for w in weights
                if w.source is not None and w.desc is not None and not _is_copy(w)),
               default=0)  # fmt: skip


def _staged_bytes(constant: Constant, source: MemoryDesc, desc: MemoryDesc) -> int:
    if not _is_narrow(source):
        return _Pieces(source, desc).size_bytes
    return source.size_bytes if _is_read_in_pieces(constant) else 0


def _is_narrow(source: MemoryDesc) -> bool:
    """Whether stored elements are smaller than float32, so that a weight is packed whole."""
    return source.dtype != "float32"


def _is_copy(weight: PackedWeight) -> bool:
    """Whether the packed bytes equal the constant's own."""
    return weight.desc is not None and weight.desc.is_plain and weight.desc == weight.source


def _in_pieces(constant: Constant) -> Constant:
    """Return the constant, computed now if it cannot be read in pieces."""
    if isinstance(constant, Inline):
        return constant
    if not _is_read_in_pieces(constant):
        return Inline(constant.array())
    if isinstance(constant, Scaled):
        return Scaled(constant.source, Inline(constant.factor.array()))
    return constant


def _is_read_in_pieces(constant: Constant) -> bool:
    """Whether a constant is neither in memory nor computed whole."""
    source = constant.source if isinstance(constant, Scaled) else constant
    if isinstance(source, Inline):
        return source is not constant
    return isinstance(source, (Fill, Mapped)) or isinstance(constant, RowByRow)


def _copy(constant: Constant, room: Bytes) -> None:
    """Copy the elements unchanged, row by row."""
    if isinstance(constant, Mapped):
        constant.file.read_into(constant.offset_bytes, room.data)
        return
    target = room.view(constant.dtype.numpy).reshape(constant.shape)
    if isinstance(constant, RowByRow):
        for start, part in constant.pieces():
            target[start : start + len(part)] = part
        return
    if not constant.shape or isinstance(constant, Scaled):
        np.copyto(target, constant.array())
        return
    row_bytes = max(len(room) // max(constant.shape[0], 1), 1)
    step = max(PIECE_BYTES // row_bytes, 1)
    for start in range(0, constant.shape[0], step):
        np.copyto(target[start : start + step], constant.array()[start : start + step])
        constant.release()


class _Pieces:
    """Cuts of a reordered constant along the first one or two axes of its own bytes.

    Axes are in the constant's storage order (`order` gives the logical ones); cuts fall on block
    boundaries of the packed layout.
    """

    def __init__(self, source: MemoryDesc, desc: MemoryDesc) -> None:
        dims, strides, blocks = source.dims, source.strides, desc.blocks
        self.order = sorted(range(len(dims)), key=lambda axis: (-strides[axis], -dims[axis], axis))
        self.stored = [dims[axis] for axis in self.order]
        self.steps = list(self.stored)
        for position in range(min(2, len(dims))):
            rest = element_count(self.steps) // max(self.steps[position], 1) * 4
            block = blocks[self.order[position]]
            blocks_in_piece = max(PIECE_BYTES // max(rest * block, 1), 1)
            self.steps[position] = min(blocks_in_piece * block, self.stored[position])
            if rest * self.steps[position] <= PIECE_BYTES:
                break

    @property
    def size_bytes(self) -> int:
        return element_count(self.steps) * 4

    def cuts(self) -> Iterator[list[Cut]]:
        """Yield each piece as cuts of the stored axes."""
        whole = [(0, length) for length in self.stored[2:]]
        for first in _steps(self.stored[0], self.steps[0]):
            if len(self.stored) == 1:
                yield [first]
                continue
            for second in _steps(self.stored[1], self.steps[1]):
                yield [first, second, *whole]

    def logical(self, by_stored: Sequence[int]) -> list[int]:
        """Reorder numbers by stored axis into logical order."""
        return [by_stored[self.order.index(axis)] for axis in range(len(self.order))]


def _steps(length: int, step: int) -> Iterator[Cut]:
    return ((start, min(start + step, length)) for start in range(0, length, step))


def _part(desc: MemoryDesc, lengths: list[int], starts: list[int]) -> tuple[MemoryDesc, int]:
    """Describe a part of the packed layout, and the bytes before it.

    Inner pieces are described as if they came first, so that equal ones share generated code; a
    piece that ends in the layout's padding is described where it is.
    """
    part = desc.part(lengths, starts)
    blocks, dims = desc.blocks, desc.dims
    if all(n % block == 0 or d == n for n, block, d in zip(lengths, blocks, dims, strict=True)):
        return desc.part(lengths, [0] * len(lengths)), part.offset_bytes
    return part, 0


def _staged(
    constant: Constant, stored: Sequence[int], cuts: Sequence[Cut], staging: Bytes
) -> NDArray[np.float32]:
    """Read a piece into staging memory, row-major."""
    lengths = [stop - start for start, stop in cuts]
    room = staging[: element_count(lengths) * 4].view(np.float32).reshape(lengths)
    if isinstance(constant, Scaled):
        _fill(room, constant.source, stored, cuts)
        np.multiply(room, _factor(constant, stored, cuts), out=room)
    else:
        _fill(room, constant, stored, cuts)
    return room


def _fill(
    room: NDArray[np.float32], constant: Constant, stored: Sequence[int], cuts: Sequence[Cut]
) -> None:
    """Read the elements of a piece; those of a mapped constant with `read`, not by mapping."""
    if not isinstance(constant, Mapped):
        np.copyto(room, constant.array().reshape(stored)[tuple(slice(*cut) for cut in cuts)])
        return
    row = element_count(stored[1:]) * 4
    first, *others = cuts
    if [stop - start for start, stop in others] == list(stored[1:]):
        constant.file.read_into(constant.offset_bytes + first[0] * row, _bytes(room))
        return
    start = constant.offset_bytes + cuts[1][0] * element_count(stored[2:]) * 4
    for position, index in enumerate(range(*first)):
        constant.file.read_into(start + index * row, _bytes(room[position]))


def _bytes(array: NDArray[np.float32]) -> memoryview:
    return array.reshape(-1).view(np.uint8).data


def _factor(constant: Scaled, stored: Sequence[int], cuts: Sequence[Cut]) -> NDArray[np.generic]:
    """Return the factors of a piece, reshaped to broadcast over it."""
    factor = constant.factor.array()
    grouped = stored[0] != len(factor)
    factor = factor.reshape(stored[:2] if grouped else stored[:1])
    factor = factor[tuple(slice(*cut) for cut in cuts[: factor.ndim])]
    return factor.reshape(*factor.shape, *[1] * (len(stored) - factor.ndim))
