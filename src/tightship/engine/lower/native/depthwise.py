"""A convolution of each channel by itself, with what is before and after it."""

from tightship._core import MemoryDesc, NativeKernel
from tightship.engine.lower.steps.builder import Builder
from tightship.engine.lower.steps.layouts import blocked, channels_last, register_floats
from tightship.engine.lower.steps.strides import site_of
from tightship.engine.lower.steps.window import window_of
from tightship.engine.program.program import Operand
from tightship.graph import Node

BLOCK = 16
"""Channels that lie together, at least, in a layout that the kernel takes."""
PACKED = "Acdb32a"
"""Weights, [channels, 1, height, width], and likewise the bias, as the kernel streams them."""


def depthwise(builder: Builder, node: Node) -> bool:
    """The kernel; an image in blocks of 16 channels is read as it lies."""
    context, source = site_of(builder, node), _source(builder, node.inputs[0])
    reads = [source, _packed(builder, node.inputs[1]), _packed(builder, node.inputs[2])]
    shape = builder.value(node.outputs[0]).static_shape
    in_blocks = builder.options.blocked and register_floats() == BLOCK and shape[1] % BLOCK == 0
    writes = [builder.output(node.outputs[0], (blocked if in_blocks else channels_last)(shape))]
    for means in node.outputs[1:]:
        writes += [builder.output(means, channels_last(builder.value(means).static_shape))]
    kernel_size = builder.value(node.inputs[1]).static_shape[2:]
    window = window_of(node, kernel_size, source.shape[2:], shape[2:])
    kernel = NativeKernel.depthwise(
        [*shape[:2]],
        [list(pair) for pair in (
            source.shape[2:], shape[2:], window.kernel, window.strides, window.dilations,
            window.begin,
        )],
        (_strides(source), _strides(writes[0])),
        (bool(context.text("before", "")), bool(context.text("after", ""))),
        (context.number("low", 0.0), context.number("high", 0.0)),
        len(writes) > 1,
    )  # fmt: skip
    scratch = kernel.scratch_bytes(builder.threads)
    builder.native(node, ("depthwise", kernel), reads, writes, scratch_bytes=scratch)
    return True


def _source(builder: Builder, name: str) -> Operand:
    """An image whose channels lie last, or in blocks of 16."""
    home = builder.home(name)
    if register_floats() == BLOCK and home.desc == blocked(home.shape):
        return home
    return builder.in_layout(name, channels_last(home.shape))


def _packed(builder: Builder, name: str) -> Operand:
    """Weights or a bias in groups of 32 channels, zeros behind the last."""
    shape = builder.value(name).static_shape
    dims = [*shape, *[1] * (4 - len(shape))]
    source, desc = MemoryDesc(dims), MemoryDesc.named(dims, "float32", PACKED)
    return builder.weight(name, source, desc)


def _strides(image: Operand) -> list[int]:
    """Elements from one image, row, pixel and block of 16 channels to the next."""
    _, channels, height, width = image.shape
    if image.desc == channels_last(image.shape):
        return [height * width * channels, width * channels, channels, BLOCK]
    blocks = -(-channels // BLOCK)
    return [blocks * height * width * BLOCK, width * BLOCK, BLOCK, height * width * BLOCK]


DEPTHWISE = {("tightship", "DepthwiseConv"): depthwise}
"""By domain and operator."""
