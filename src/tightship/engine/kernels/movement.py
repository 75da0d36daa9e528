"""Operators that move elements without changing them: copies between views."""

import numpy as np

from tightship.engine.kernels.kernel import Array, Kernel, Operands
from tightship.engine.kernels.kernel_context import KernelContext, axis_of, require


def copy(context: KernelContext) -> Kernel:
    """Copy the elements in order, under another shape."""
    require(context.dtype(0) == context.output_dtype())
    pairs = ((0, 0),)
    return Kernel(context.node.operator, _copy_all, in_place=pairs)


def _copy_all(inputs: Operands, outputs: Operands, _: Array | None) -> None:
    np.copyto(outputs[0].reshape(-1), inputs[0].reshape(-1))


def dropout(context: KernelContext) -> Kernel:
    """Copy, because only inference is covered; the optional mask keeps every element."""
    if context.version >= 12:
        training = context.parameter(2)
        require(training is None or not bool(training))
    elif context.version < 7:
        require(bool(context.integer("is_test", 0)))

    def run(inputs: Operands, outputs: Operands, _: Array | None) -> None:
        np.copyto(outputs[0], inputs[0])
        if len(outputs) > 1 and outputs[1] is not None:
            outputs[1].fill(1)

    return Kernel("Dropout", run, in_place=context.same_type(0))


def transpose(context: KernelContext) -> Kernel:
    rank = len(context.shape(0))
    permutation = context.integers("perm") or tuple(range(rank))[::-1]

    def run(inputs: Operands, outputs: Operands, _: Array | None) -> None:
        np.copyto(outputs[0], inputs[0].transpose(permutation))

    return Kernel("Transpose", run)


def expand(context: KernelContext) -> Kernel:
    def run(inputs: Operands, outputs: Operands, _: Array | None) -> None:
        np.copyto(outputs[0], inputs[0])

    return Kernel("Expand", run, in_place=context.same_type(0))


def tile(context: KernelContext) -> Kernel:
    """Repeat as often as the two shapes imply."""
    source, target = context.shape(0), context.output_shape()
    repeats = [long // max(short, 1) for long, short in zip(target, source, strict=True)]
    grid = [length for pair in zip(repeats, source, strict=True) for length in pair]
    cell = [length for short in source for length in (1, short)]

    def run(inputs: Operands, outputs: Operands, _: Array | None) -> None:
        np.copyto(outputs[0].reshape(grid), inputs[0].reshape(cell))

    return Kernel("Tile", run)


def concat(context: KernelContext) -> Kernel:
    rank = len(context.output_shape())
    axis = axis_of(context.integer("axis", 1), rank)
    parts = _consecutive([context.shape(i)[axis] for i in range(len(context.inputs))], axis)

    def run(inputs: Operands, outputs: Operands, _: Array | None) -> None:
        for part, operand in zip(parts, inputs, strict=True):
            np.copyto(outputs[0][part], operand)

    return Kernel("Concat", run)


def split(context: KernelContext) -> Kernel:
    """Split by the lengths of the outputs, none of which may be left out."""
    axis = axis_of(context.integer("axis", 0), len(context.shape(0)))
    lengths = [context.output_shape(index)[axis] for index in range(len(context.outputs))]
    parts = _consecutive(lengths, axis)

    def run(inputs: Operands, outputs: Operands, _: Array | None) -> None:
        for part, out in zip(parts, outputs, strict=True):
            np.copyto(out, inputs[0][part])

    return Kernel("Split", run)


def _consecutive(lengths: list[int], axis: int) -> list[tuple[slice, ...]]:
    """Return indices of consecutive parts along an axis."""
    parts = []
    start = 0
    for length in lengths:
        parts.append((slice(None),) * axis + (slice(start, start + length),))
        start += length
    return parts


def take_slice(context: KernelContext) -> Kernel:
    part = taken(context)

    def run(inputs: Operands, outputs: Operands, _: Array | None) -> None:
        np.copyto(outputs[0], inputs[0][part])

    return Kernel("Slice", run)


def taken(context: KernelContext) -> tuple[slice, ...]:
    """Return the part of each axis that a Slice takes, within its bounds.

    Raises:
        NotCoveredError: It is known only while running.
    """
    shape = context.shape(0)
    if context.version < 10:
        starts, ends = context.integers("starts"), context.integers("ends")
        axes = context.integers("axes")
        steps = None
    else:
        starts, ends = context.axes(1, "starts"), context.axes(2, "ends")
        axes, steps = context.axes(3), context.axes(4, "steps")
    assert starts is not None
    assert ends is not None
    index = [slice(None)] * len(shape)
    for place, (start, end) in enumerate(zip(starts, ends, strict=True)):
        axis = axis_of(axes[place], len(shape)) if axes is not None else place
        index[axis] = clamped(start, end, steps[place] if steps is not None else 1, shape[axis])
    return tuple(index)


def clamped(start: int, end: int, step: int, length: int) -> slice:
    """Clamp ONNX's start and end to a slice of a dimension of `length`."""
    start += length if start < 0 else 0
    end += length if end < 0 else 0
    if step > 0:
        return slice(min(max(start, 0), length), min(max(end, 0), length), step)
    start = min(max(start, 0), length - 1)
    end = min(max(end, -1), length - 1)
    return slice(start, None if end < 0 else end, step) if length else slice(0, 0, step)


def depth_to_space(context: KernelContext) -> Kernel:
    batch, depth, height, width = context.shape(0)
    block = context.integer("blocksize", 1)
    channels = depth // (block * block)
    if context.text("mode", "DCR") == "DCR":
        cells: tuple[int, ...] = (batch, block, block, channels, height, width)
        order: tuple[int, ...] = (0, 3, 4, 1, 5, 2)
    else:
        cells = (batch, channels, block, block, height, width)
        order = (0, 1, 4, 2, 5, 3)
    target = (batch, channels, height, block, width, block)

    def run(inputs: Operands, outputs: Operands, _: Array | None) -> None:
        np.copyto(outputs[0].reshape(target), inputs[0].reshape(cells).transpose(order))

    return Kernel("DepthToSpace", run)


def space_to_depth(context: KernelContext) -> Kernel:
    batch, channels, height, width = context.shape(0)
    block = context.integer("blocksize", 1)
    rows, columns = height // block, width // block
    cells = (batch, channels, rows, block, columns, block)
    if context.text("mode", "DCR") == "DCR":
        target: tuple[int, ...] = (batch, block, block, channels, rows, columns)
        order: tuple[int, ...] = (0, 3, 5, 1, 2, 4)
    else:
        target = (batch, channels, block, block, rows, columns)
        order = (0, 1, 3, 5, 2, 4)

    def run(inputs: Operands, outputs: Operands, _: Array | None) -> None:
        moved = inputs[0].reshape(cells).transpose(order)
        np.copyto(outputs[0].reshape(target), moved)

    return Kernel("SpaceToDepth", run)
