"""Gradients of the scales and real zero points of weights in blocks."""

from collections.abc import Iterator

from tightship.graph.backward.gradient_context import GradientContext
from tightship.graph.layout import DType

_OWN = ("tightship", 1)


def dequantize_blocks(at: GradientContext) -> Iterator[tuple[int, str]]:
    """Sum over each block: of scales, times the integers less their zero points."""
    dtype, scales = at.dtype(at.y), at.x(1)
    if at.wants(1):
        ones = at.expanded(at.number(1.0, scales), at.shape(scales))
        inputs = (at.x(0), ones, at.optional(2))
        whole = at.tape.write(
            "DequantizeBlocks", inputs, [(dtype, at.shape(at.y))], at.node.attributes, _OWN
        )[0]
        yield 1, at.reshaped(_by_block(at, at.op("Mul", at.dy, whole)), at.shape(scales))
    if at.wants(2) and at.dtype(at.x(2)) is not DType.UINT8:
        sums = at.reshaped(_by_block(at, at.dy), at.shape(scales))
        zeros = at.scaled(at.op("Mul", sums, scales), -1.0)
        yield 2, at.reshaped(zeros, at.shape(at.x(2)))


def _by_block(at: GradientContext, name: str) -> str:
    """Sum the elements of each block of a row; the last block may be cut."""
    rows, depth = at.shape(name)
    size = at.integer("block_size", 0)
    blocks = -(-depth // size)
    rest = blocks * size - depth
    if rest:
        row = at.expanded(at.number(0.0, name), (rows, rest))
        name = at.op("Concat", name, row, shape=(rows, blocks * size), attributes={"axis": 1})
    return at.summed(at.reshaped(name, (rows, blocks, size)), [2])
