"""Operators that move elements and change none: copies between views."""

from collections.abc import Mapping

import numpy as np

from tightship.engine.kernels.kernel import Array, Kernel, Operands
from tightship.engine.kernels.site import Builder, Site, axis_of, require


def _copy(site: Site) -> Kernel:
    """The same elements in the same order, under another shape."""
    require(site.dtype(0) == site.output_dtype())
    pairs = ((0, 0),)
    return Kernel(site.node.operator, _copy_all, in_place=pairs)


def _copy_all(inputs: Operands, outputs: Operands, _: Array | None) -> None:
    np.copyto(outputs[0].reshape(-1), inputs[0].reshape(-1))


def _dropout(site: Site) -> Kernel:
    """A copy: only inference is covered. The mask, where asked for, keeps every element."""
    if site.version >= 12:
        training = site.parameter(2)
        require(training is None or not bool(training))
    elif site.version < 7:
        require(bool(site.integer("is_test", 0)))

    def run(inputs: Operands, outputs: Operands, _: Array | None) -> None:
        np.copyto(outputs[0], inputs[0])
        if len(outputs) > 1 and outputs[1] is not None:
            outputs[1].fill(1)

    return Kernel("Dropout", run, in_place=site.same_type(0))


def _transpose(site: Site) -> Kernel:
    rank = len(site.shape(0))
    permutation = site.integers("perm") or tuple(range(rank))[::-1]

    def run(inputs: Operands, outputs: Operands, _: Array | None) -> None:
        np.copyto(outputs[0], inputs[0].transpose(permutation))

    return Kernel("Transpose", run)


def _expand(site: Site) -> Kernel:
    def run(inputs: Operands, outputs: Operands, _: Array | None) -> None:
        np.copyto(outputs[0], inputs[0])

    return Kernel("Expand", run, in_place=site.same_type(0))


def _tile(site: Site) -> Kernel:
    """Repeats follow from the two shapes."""
    source, target = site.shape(0), site.output_shape()
    repeats = [long // max(short, 1) for long, short in zip(target, source, strict=True)]
    grid = [length for pair in zip(repeats, source, strict=True) for length in pair]
    cell = [length for short in source for length in (1, short)]

    def run(inputs: Operands, outputs: Operands, _: Array | None) -> None:
        np.copyto(outputs[0].reshape(grid), inputs[0].reshape(cell))

    return Kernel("Tile", run)


def _concat(site: Site) -> Kernel:
    rank = len(site.output_shape())
    axis = axis_of(site.integer("axis", 1), rank)
    parts = _consecutive([site.shape(i)[axis] for i in range(len(site.inputs))], axis)

    def run(inputs: Operands, outputs: Operands, _: Array | None) -> None:
        for part, operand in zip(parts, inputs, strict=True):
            np.copyto(outputs[0][part], operand)

    return Kernel("Concat", run)


def _split(site: Site) -> Kernel:
    """Lengths are those of the outputs, which must all be there."""
    axis = axis_of(site.integer("axis", 0), len(site.shape(0)))
    lengths = [site.output_shape(index)[axis] for index in range(len(site.outputs))]
    parts = _consecutive(lengths, axis)

    def run(inputs: Operands, outputs: Operands, _: Array | None) -> None:
        for part, out in zip(parts, outputs, strict=True):
            np.copyto(out, inputs[0][part])

    return Kernel("Split", run)


def _consecutive(lengths: list[int], axis: int) -> list[tuple[slice, ...]]:
    """Indices of parts that follow one another along an axis."""
    parts = []
    start = 0
    for length in lengths:
        parts.append((slice(None),) * axis + (slice(start, start + length),))
        start += length
    return parts


def _take_slice(site: Site) -> Kernel:
    part = taken(site)

    def run(inputs: Operands, outputs: Operands, _: Array | None) -> None:
        np.copyto(outputs[0], inputs[0][part])

    return Kernel("Slice", run)


def taken(site: Site) -> tuple[slice, ...]:
    """What a Slice takes of each axis, inside its bounds.

    Raises:
        NotCoveredError: Only the run knows.
    """
    shape = site.shape(0)
    if site.version < 10:
        starts, ends = site.integers("starts"), site.integers("ends")
        axes = site.integers("axes")
        steps = None
    else:
        starts, ends = site.axes(1, "starts"), site.axes(2, "ends")
        axes, steps = site.axes(3), site.axes(4, "steps")
    assert starts is not None
    assert ends is not None
    index = [slice(None)] * len(shape)
    for place, (start, end) in enumerate(zip(starts, ends, strict=True)):
        axis = axis_of(axes[place], len(shape)) if axes is not None else place
        index[axis] = _clamped(start, end, steps[place] if steps is not None else 1, shape[axis])
    return tuple(index)


def _clamped(start: int, end: int, step: int, length: int) -> slice:
    """ONNX's start and end as a slice of a dimension of `length`."""
    start += length if start < 0 else 0
    end += length if end < 0 else 0
    if step > 0:
        return slice(min(max(start, 0), length), min(max(end, 0), length), step)
    start = min(max(start, 0), length - 1)
    end = min(max(end, -1), length - 1)
    return slice(start, None if end < 0 else end, step) if length else slice(0, 0, step)


def _depth_to_space(site: Site) -> Kernel:
    batch, depth, height, width = site.shape(0)
    block = site.integer("blocksize", 1)
    channels = depth // (block * block)
    if site.text("mode", "DCR") == "DCR":
        cells: tuple[int, ...] = (batch, block, block, channels, height, width)
        order: tuple[int, ...] = (0, 3, 4, 1, 5, 2)
    else:
        cells = (batch, channels, block, block, height, width)
        order = (0, 1, 4, 2, 5, 3)
    target = (batch, channels, height, block, width, block)

    def run(inputs: Operands, outputs: Operands, _: Array | None) -> None:
        np.copyto(outputs[0].reshape(target), inputs[0].reshape(cells).transpose(order))

    return Kernel("DepthToSpace", run)


def _space_to_depth(site: Site) -> Kernel:
    batch, channels, height, width = site.shape(0)
    block = site.integer("blocksize", 1)
    rows, columns = height // block, width // block
    cells = (batch, channels, rows, block, columns, block)
    if site.text("mode", "DCR") == "DCR":
        target: tuple[int, ...] = (batch, block, block, channels, rows, columns)
        order: tuple[int, ...] = (0, 3, 5, 1, 2, 4)
    else:
        target = (batch, channels, block, block, rows, columns)
        order = (0, 1, 3, 5, 2, 4)

    def run(inputs: Operands, outputs: Operands, _: Array | None) -> None:
        moved = inputs[0].reshape(cells).transpose(order)
        np.copyto(outputs[0].reshape(target), moved)

    return Kernel("SpaceToDepth", run)


MOVEMENT: Mapping[str, Builder] = {
    "Concat": _concat,
    "DepthToSpace": _depth_to_space,
    "Dropout": _dropout,
    "Expand": _expand,
    "Flatten": _copy,
    "Identity": _copy,
    "Reshape": _copy,
    "Slice": _take_slice,
    "SpaceToDepth": _space_to_depth,
    "Split": _split,
    "Squeeze": _copy,
    "Tile": _tile,
    "Transpose": _transpose,
    "Unsqueeze": _copy,
}
