"""Parts of operands that a copy reads or writes: cut, permuted, unfolded, repeated."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import prod

from tightship._core import NativeKernel
from tightship.engine.lower.steps.builder import Builder
from tightship.engine.lower.steps.strides import byte_strides, plain
from tightship.engine.program.program import Operand
from tightship.graph import Node


@dataclass(frozen=True, slots=True)
class Part:
    """Elements of an operand at a byte offset, by shape and byte strides."""

    operand: Operand
    offset_bytes: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]

    @classmethod
    def whole(cls, operand: Operand) -> "Part":
        """Make a part of all elements of an operand that strides can describe."""
        return cls(operand, 0, operand.shape, tuple(byte_strides(operand)))

    def cut(self, axis: int, start: int, length: int, step: int = 1) -> "Part":
        """Select elements start, start + step, ... of an axis, all within it."""
        stride = self.strides[axis]
        return replace(
            self,
            offset_bytes=self.offset_bytes + (start * stride if length else 0),
            shape=_put(self.shape, axis, (length,)),
            strides=_put(self.strides, axis, (stride * step,)),
        )

    def permuted(self, order: Sequence[int]) -> "Part":
        """Permute the axes."""
        shape = tuple(self.shape[axis] for axis in order)
        return replace(self, shape=shape, strides=tuple(self.strides[axis] for axis in order))

    def unfolded(self, axis: int, lengths: Sequence[int]) -> "Part":
        """Split one axis into several, the last of them the fastest."""
        assert prod(lengths) == self.shape[axis], (self, lengths)
        stride = self.strides[axis]
        strides = [stride * prod(lengths[place + 1 :]) for place in range(len(lengths))]
        return replace(
            self,
            shape=_put(self.shape, axis, tuple(lengths)),
            strides=_put(self.strides, axis, tuple(strides)),
        )

    def repeated(self, axis: int, count: int) -> "Part":
        """Insert an axis along which the elements repeat."""
        return replace(
            self,
            shape=(*self.shape[:axis], count, *self.shape[axis:]),
            strides=(*self.strides[:axis], 0, *self.strides[axis:]),
        )


def _put(values: tuple[int, ...], axis: int, instead: tuple[int, ...]) -> tuple[int, ...]:
    return (*values[:axis], *instead, *values[axis + 1 :])


def move(builder: Builder, node: Node, pairs: Sequence[tuple[Part, Part]]) -> None:
    """Add one step that copies each first part to the second; together they fill the outputs."""
    reads = _distinct([source.operand for source, _ in pairs])
    writes = _distinct([target.operand for _, target in pairs])
    operands = [*reads, *writes]
    moves = [
        (
            list(source.shape),
            (operands.index(source.operand), source.offset_bytes, list(source.strides)),
            (operands.index(target.operand), target.offset_bytes, list(target.strides)),
        )
        for source, target in pairs
    ]
    assert all(source.shape == target.shape for source, target in pairs), pairs
    kernel = NativeKernel.moves(writes[0].dtype.itemsize, moves)
    builder.native(node, ("copy", kernel), reads, writes)


def _distinct(operands: Sequence[Operand]) -> list[Operand]:
    return [operand for place, operand in enumerate(operands) if operand not in operands[:place]]


def source_part(builder: Builder, node: Node) -> Part:
    """Make a part of the first input, in its own layout if strides can describe it."""
    return Part.whole(plain(builder, node.inputs[0]))


def target_part(builder: Builder, node: Node, index: int = 0) -> Part:
    """Make a part of an output, row-major."""
    return Part.whole(builder.output(node.outputs[index]))
