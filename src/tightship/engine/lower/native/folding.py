"""Emits Col2Im: sums blocks at their positions in an image, one axis after another."""

import numpy as np
from numpy.typing import NDArray

from tightship._core import NativeKernel
from tightship.engine.kernels.kernel_context import require
from tightship.engine.lower.steps.builder import Builder
from tightship.engine.lower.steps.strides import site_of
from tightship.graph import DType, Node, element_count

Table = NDArray[np.int64]


def fold(builder: Builder, node: Node) -> None:
    """Fold the last axis first; its part of a block and its positions become the image's axis."""
    context = site_of(builder, node)
    image, block = context.parameter(1), context.parameter(2)
    require(context.input(0).dtype is DType.FLOAT32 and 0 not in context.shape(0))
    assert image is not None
    assert block is not None
    lengths, kernel = image.tolist(), block.tolist()
    rank = len(lengths)
    strides = context.integers("strides") or (1,) * rank
    dilations = context.integers("dilations") or (1,) * rank
    pads = context.integers("pads") or (0,) * (2 * rank)
    reads, columns = [], []
    for axis, length in enumerate(lengths):
        reach = length + pads[axis] + pads[axis + rank] - dilations[axis] * (kernel[axis] - 1) - 1
        columns.append(reach // strides[axis] + 1)
    require(element_count(columns) == context.shape(0)[2])
    outside = element_count(context.output_shape()[:2])
    for axis in reversed(range(rank)):
        at = _read(
            (kernel[axis], columns[axis], lengths[axis]),
            (strides[axis], dilations[axis], pads[axis]),
        )
        around = element_count(columns[:axis])
        indices, weights = _over(at, around, columns[axis])
        before = outside * element_count(kernel[:axis])
        sizes = (before, kernel[axis] * around * columns[axis], element_count(lengths[axis + 1 :]))
        reads.append((sizes, indices.tolist(), weights.tolist()))
    made = NativeKernel.taps(reads)
    source, target = builder.dense(node.inputs[0]), builder.output(node.outputs[0])
    builder.native(node, ("taps", made), [source], [target])


def _read(sizes: tuple[int, int, int], steps: tuple[int, int, int]) -> Table:
    """Return the column that each part of a block has at each position; -1 for none."""
    (kernel, columns, length), (stride, dilation, pad) = sizes, steps
    first = np.arange(length) + pad - dilation * np.arange(kernel)[:, None]
    column = first // stride
    return np.where((first % stride == 0) & (column >= 0) & (column < columns), column, -1)


def _over(at: Table, around: int, columns: int) -> tuple[Table, NDArray[np.float32]]:
    """Return taps of positions (around, length) among elements (kernel, around, columns)."""
    kernel, length = at.shape
    part, row = np.arange(kernel)[:, None, None], np.arange(around)[:, None]
    index = ((part * around + row) * columns + at[:, None]).reshape(kernel, around * length)
    used = np.broadcast_to(at[:, None] >= 0, (kernel, around, length)).reshape(index.shape)
    order = np.argsort(~used, axis=0, kind="stable")[: max(int(used.sum(0).max()), 1)]
    taken, weights = (np.take_along_axis(each, order, 0) for each in (index, used))
    return np.where(weights, taken, 0), weights.astype(np.float32)
