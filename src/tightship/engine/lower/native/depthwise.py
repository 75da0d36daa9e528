"""Emits depthwise convolutions with the activations before and after them."""

from collections.abc import Sequence

from tightship._core import MemoryDesc, NativeKernel
from tightship.engine.lower.steps.builder import Builder
from tightship.engine.lower.steps.images import image_layout, image_source, image_strides
from tightship.engine.lower.steps.layouts import channels_last
from tightship.engine.lower.steps.strides import site_of
from tightship.engine.lower.steps.window import turned_axes, window_of
from tightship.engine.program.program import Operand
from tightship.graph import Node

PACKED = "Acdb32a"
"""Layout of weights, [channels, 1, height, width], and of the bias, as the kernel streams them."""


def depthwise(builder: Builder, node: Node) -> None:
    """Emit the kernel; an image in blocks of 16 channels is read in that layout."""
    if node.attributes.get("planes"):
        _planes(builder, node)
        return
    context, source = site_of(builder, node), image_source(builder, node.inputs[0])
    reads = [source, _packed(builder, node.inputs[1]), _packed(builder, node.inputs[2])]
    shape = builder.value(node.outputs[0]).static_shape
    writes = [builder.output(node.outputs[0], image_layout(builder, shape))]
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
        (image_strides(source), image_strides(writes[0])),
        (bool(context.text("before", "")), bool(context.text("after", ""))),
        (context.number("low", 0.0), context.number("high", 0.0)),
        len(writes) > 1,
    )  # fmt: skip
    builder.native(node, ("depthwise", kernel), reads, writes)


def _planes(builder: Builder, node: Node) -> None:
    """Emit the kernel of row-major images, whose axes are turned if the last has one pixel."""
    context, image, weights, bias = site_of(builder, node), *map(builder.dense, node.inputs)
    before, after = image.shape, builder.value(node.outputs[0]).static_shape
    window = window_of(node, weights.shape[2:], before[2:], after[2:])
    axes = turned_axes(window, before[2:], after[2:])
    window = window.turned(axes)

    def pair(values: Sequence[int], absent: int) -> list[int]:
        return [*[absent] * (2 - len(values)), *values]

    sizes = [
        *(pair([shape[2 + axis] for axis in axes], 1) for shape in (before, after)),
        *(pair(part, 1) for part in (window.kernel, window.strides, window.dilations)),
        pair(window.begin, 0),
    ]
    kernel = NativeKernel.plane_convolution(
        [*before[:2], after[1] // before[1]],
        sizes,
        bool(context.text("after", "")),
        (context.number("low", 0.0), context.number("high", 0.0)),
    )
    target = builder.output(node.outputs[0])
    builder.native(node, ("planes", kernel), [image, weights, bias], [target])


def _packed(builder: Builder, name: str) -> Operand:
    """Pack weights or a bias into groups of 32 channels, padded with zeros."""
    shape = builder.value(name).static_shape
    dims = [*shape, *[1] * (4 - len(shape))]
    source, desc = MemoryDesc(dims), MemoryDesc.named(dims, "float32", PACKED)
    return builder.weight(name, source, desc)
