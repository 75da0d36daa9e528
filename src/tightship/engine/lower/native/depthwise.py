"""Emits depthwise convolutions with the activations before and after them."""

from tightship._core import MemoryDesc, NativeKernel
from tightship.engine.lower.steps.builder import Builder
from tightship.engine.lower.steps.layouts import blocked, channels_last, register_floats
from tightship.engine.lower.steps.strides import site_of
from tightship.engine.lower.steps.window import window_of
from tightship.engine.program.program import Operand
from tightship.graph import Node

BLOCK = 16
"""Channels in a block of the blocked layout that the kernel reads."""
PACKED = "Acdb32a"
"""Layout of weights, [channels, 1, height, width], and of the bias, as the kernel streams them."""


def depthwise(builder: Builder, node: Node) -> None:
    """Emit the kernel; an image in blocks of 16 channels is read in that layout."""
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
    builder.native(node, ("depthwise", kernel), reads, writes)


def _source(builder: Builder, name: str) -> Operand:
    """Return an image with channels last, or in blocks of 16."""
    home = builder.home(name)
    if register_floats() == BLOCK and home.desc == blocked(home.shape):
        return home
    return builder.in_layout(name, channels_last(home.shape))


def _packed(builder: Builder, name: str) -> Operand:
    """Pack weights or a bias into groups of 32 channels, padded with zeros."""
    shape = builder.value(name).static_shape
    dims = [*shape, *[1] * (4 - len(shape))]
    source, desc = MemoryDesc(dims), MemoryDesc.named(dims, "float32", PACKED)
    return builder.weight(name, source, desc)


def _strides(image: Operand) -> list[int]:
    """Return the elements from one image, row, pixel and block of 16 channels to the next."""
    _, channels, height, width = image.shape
    if image.desc == channels_last(image.shape):
        return [height * width * channels, width * channels, channels, BLOCK]
    blocks = -(-channels // BLOCK)
    return [blocks * height * width * BLOCK, width * BLOCK, BLOCK, height * width * BLOCK]
