"""Emits gradients of convolutions, in the layouts that the forward pass left the images in."""

from itertools import product
from math import prod

from tightship._core import Attributes, MemoryDesc, PrimitiveDesc
from tightship.engine.kernels.kernel_context import require
from tightship.engine.lower.onednn.choose import first_fast
from tightship.engine.lower.onednn.gradient import (
    DIFF_BIAS,
    DIFF_DST,
    DIFF_SRC,
    DIFF_WEIGHTS,
    gradient_step,
)
from tightship.engine.lower.onednn.halves import layouts, pays
from tightship.engine.lower.onednn.parameters import parameter
from tightship.engine.lower.steps.builder import SRC, Builder, ImageLayouts
from tightship.engine.lower.steps.layouts import row_major
from tightship.engine.lower.steps.window import Window4, window_of
from tightship.graph import Node

WEIGHTS = 33
RANKS = (3, 4, 5)
"""Ranks of images that oneDNN convolves."""


def data_gradient(builder: Builder, node: Node) -> None:
    """Emit the gradient of the image, from the result's gradient and the weights."""
    gradient, weights = (builder.value(name).static_shape for name in node.inputs)
    image = builder.value(node.outputs[0]).static_shape
    require(len(image) in RANKS)
    window = window_of(node, weights[2:], image[2:], gradient[2:]).parts
    stored = _grouped(node, weights)
    sources = [_as_it_lies(builder, node.inputs[0]), builder.preferred(gradient)]
    if _rounds(builder, weights):
        sources = [*layouts(builder, node.inputs[0]), *sources]
    _, desc = first_fast(
        dict.fromkeys(sources),
        lambda source: PrimitiveDesc.convolution_data_gradient(
            [builder.preferred(image), MemoryDesc.any(stored.dims, source.dtype), None, source],
            window, Attributes(),
        ),
    )  # fmt: skip
    reads = [
        (DIFF_DST, builder.in_layout(node.inputs[0], desc.operand(DIFF_DST))),
        (WEIGHTS, parameter(builder, node.inputs[1], stored, desc.operand(WEIGHTS))),
    ]
    result = builder.output(node.outputs[0], desc.operand(DIFF_SRC))
    gradient_step(builder, node, desc, reads, [(DIFF_SRC, result)])


def weights_gradient(builder: Builder, node: Node) -> None:
    """Emit the gradients of the weights and, if it is an output, of the bias."""
    gradient, image = (builder.value(name).static_shape for name in node.inputs)
    require(len(image) in RANKS and bool(node.outputs[0]))
    weights = builder.value(node.outputs[0]).static_shape
    window = window_of(node, weights[2:], image[2:], gradient[2:]).parts
    bias = node.outputs[1] if len(node.outputs) > 1 else ""
    filters = MemoryDesc([weights[0]]) if bias else None
    stored = _grouped(node, weights)
    desc = _of_weights(builder, node, [MemoryDesc.any(stored.dims), filters], window)
    layout = desc.operand(DIFF_WEIGHTS)
    name, is_one_group = node.outputs[0], len(layout.dims) == len(weights)
    result = (
        builder.output(name, layout)
        if is_one_group
        else builder.room(f"{name}.{layout.format}", layout)
    )
    writes = [(DIFF_WEIGHTS, result)]
    if bias:
        writes.append((DIFF_BIAS, builder.output(bias)))
    dy, x = node.inputs
    reads = [
        (SRC, builder.in_layout(x, desc.operand(SRC))),
        (DIFF_DST, builder.in_layout(dy, desc.operand(DIFF_DST))),
    ]
    gradient_step(builder, node, desc, reads, writes)
    if not is_one_group:
        builder.reorder(result, builder.output(name).under(stored))


def _of_weights(
    builder: Builder, node: Node, parameters: list[MemoryDesc | None], window: Window4
) -> PrimitiveDesc:
    """Describe the primitive for the images' own layouts if that is fast, else for free ones."""
    dy, x = node.inputs
    shapes = [builder.value(name).static_shape for name in (x, dy)]
    free: ImageLayouts = builder.preferred(shapes[0]), builder.preferred(shapes[1])
    images = [(_as_it_lies(builder, x), _as_it_lies(builder, dy)), free]
    if _rounds(builder, builder.value(node.outputs[0]).static_shape):
        images = [*product(layouts(builder, x), layouts(builder, dy)), *images]
    return first_fast(
        dict.fromkeys(images),
        lambda images: PrimitiveDesc.convolution_weights_gradient(
            [images[0], *parameters, images[1]], window, Attributes()
        ),
    )[1]


def _rounds(builder: Builder, weights: tuple[int, ...]) -> bool:
    """Whether rounding images to bfloat16 pays."""
    filters, channels, *kernel = weights
    return pays(builder, filters, channels * prod(kernel))


def _as_it_lies(builder: Builder, name: str) -> MemoryDesc:
    """Return an image's layout if a primitive chose it, else a free one."""
    home = builder.home(name)
    assert home.desc is not None
    return builder.preferred(home.shape) if home.desc == row_major(home.shape) else home.desc


def _grouped(node: Node, weights: tuple[int, ...]) -> MemoryDesc:
    """Describe row-major weights, with an axis of groups if there are several."""
    groups = node.integer("group", 1)
    split = [groups, weights[0] // groups] if groups > 1 else [weights[0]]
    return MemoryDesc([*split, *weights[1:]])
