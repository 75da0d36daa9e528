"""Scales the input channels of packed weights in each run."""

import re
from math import prod

from tightship._core import MemoryDesc, NativeKernel
from tightship.engine.lower.steps.builder import Builder
from tightship.engine.lower.steps.layouts import blocked, register_floats
from tightship.engine.program.program import Operand
from tightship.graph import DType, Node

OUTPUT, CHANNEL = 0, 1
"""Axes of weights."""
ITEM_BYTES = DType.FLOAT32.itemsize


def scaled(builder: Builder, node: Node, weights: Operand, scale: str) -> Operand:
    """Multiply packed 1x1 weights by a scale for each channel, `[1, channels, 1, 1]`."""
    desc = weights.desc
    assert desc is not None
    axes, padded = _axes(desc)
    scales = builder.dense(scale)
    if padded:
        assert desc.blocks[CHANNEL] == register_floats(), desc
        scales = builder.in_layout(scale, blocked(scales.shape))
    target = builder.room(f"{weights.name}.scaled", desc)
    lengths, steps, scale_steps = ([axis[part] for axis in axes] for part in range(3))
    strides = [[step * ITEM_BYTES for step in each] for each in (steps, scale_steps, steps)]
    kernel = NativeKernel.scale(lengths, strides)
    step = Node(f"{node.name}.scaled", "Mul", (), ())
    builder.native(step, ("scale", kernel), [weights, scales], [target])
    return target


def _axes(desc: MemoryDesc) -> tuple[list[tuple[int, int, int]], bool]:
    """Return length, weight stride and scale stride in elements, by axis from the outermost.

    Also return whether the channels are padded.
    """
    inner = [(int(size), "ab".index(axis)) for size, axis in re.findall(r"(\d+)(\w)", desc.format)]
    blocks = [prod(size for size, axis in inner if axis == each) for each in (OUTPUT, CHANNEL)]
    counts = [-(-desc.dims[axis] // blocks[axis]) for axis in (OUTPUT, CHANNEL)]
    axes = [
        (counts[axis], desc.strides[axis], blocks[axis] if axis == CHANNEL else 0)
        for axis in sorted((OUTPUT, CHANNEL), key=lambda axis: -desc.strides[axis])
    ]
    within = {OUTPUT: 0, CHANNEL: blocks[CHANNEL]}
    step = prod(size for size, _ in inner)
    for size, axis in inner:
        step //= size
        within[axis] //= size
        axes.append((size, step, within[axis]))
    return axes, desc.dims[CHANNEL] % blocks[CHANNEL] != 0
