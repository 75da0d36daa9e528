"""Emits optimizer updates and gradients on native kernels."""

import math
from collections.abc import Callable, Sequence

from tightship._core import MemoryDesc, NativeKernel
from tightship.engine.kernels.kernel_context import axis_of, covered, require
from tightship.engine.lower.steps.builder import Builder
from tightship.engine.lower.steps.layouts import channels_last, row_major
from tightship.engine.lower.steps.strides import site_of
from tightship.engine.lower.steps.window import window_of
from tightship.engine.program.program import Operand
from tightship.graph import DType, Node, element_count

Layout = Callable[[Sequence[int]], MemoryDesc] | None
"""Layout of images: channels last, or None for row-major."""
IMAGE_RANKS = (3, 4)
"""Ranks of images that kernels with windows cover."""


def update(settings: str) -> Callable[[Builder, Node], None]:
    """Update a weight and its state in one pass, each over itself.

    Args:
        settings: The input that is the rate, then the attributes that are the kernel's numbers; a
            dash stands for none.
    """
    scalars, *names = settings.split()
    return lambda builder, node: _update(builder, node, int(scalars), names)


def _update(builder: Builder, node: Node, scalars: int, names: Sequence[str]) -> None:
    context = site_of(builder, node)
    large = range(2 + len(node.outputs) - 1)
    require(all(context.input(index).dtype is DType.FLOAT32 for index in large))
    numbers = [0.0 if name == "-" else context.number(name, 0.0) for name in names]
    has = [context.has_input(index) for index in (scalars, scalars + 1)]
    whole, count = element_count(context.shape(0)), element_count(context.shape(1))
    start = context.integer("start", 0) * element_count(context.shape(0)[1:])
    kernel = covered(NativeKernel.update(node.operator, (start, count, whole), has, numbers))
    sources = [builder.dense(name) for name in node.inputs if name]
    targets = [builder.output(name) for name in node.outputs]
    kept = [sources[0], *sources[2:]]
    in_place = list(zip(targets, kept, strict=False))
    if node.operator == "RunningUpdate" and count == whole:
        in_place.append((targets[0], sources[1]))
    builder.native(node, (node.operator, kernel), sources, targets, in_place=in_place)


def squares(builder: Builder, node: Node) -> None:
    """Emit the sum of a gradient's squares, added to a total."""
    context = site_of(builder, node)
    require(context.dtype(0).name == "float32")
    kernel = NativeKernel.squares_added(element_count(context.shape(0)), context.has_input(1))
    sources = [builder.dense(name) for name in node.inputs]
    target = builder.output(node.outputs[0])
    builder.native(node, ("squares_added", kernel), sources, [target])


def clip(builder: Builder, node: Node) -> None:
    """Emit the factor that clips gradients, from the sum of all squares."""
    context = site_of(builder, node)
    kernel = NativeKernel.clip_scale(context.number("limit", math.inf), node.name)
    targets = [builder.output(name) for name in node.outputs]
    builder.native(node, ("clip_scale", kernel), [builder.dense(node.inputs[0])], targets)


def dropout(builder: Builder, node: Node) -> None:
    """Emit Dropout by counter-based random numbers; it may overwrite its operand."""
    context = site_of(builder, node)
    require(context.dtype(0).name == "float32")
    numbers = [context.number("ratio", 0.5), context.number("scale", 2.0)]
    kernel = NativeKernel.dropout(
        element_count(context.shape(0)),
        numbers,
        context.integer("stream", 0),
        context.has_output(1),
    )
    sources = [builder.dense(name) for name in node.inputs]
    targets = [builder.output(name) for name in node.outputs if name]
    in_place = [(targets[0], sources[0])]
    builder.native(node, ("dropout", kernel), sources, targets, in_place=in_place)


def batch_normalization(builder: Builder, node: Node) -> None:
    """Emit the batch's statistics and the image normalized by them, in the image's layout."""
    context, layout = site_of(builder, node), _layout(builder, node.inputs[0])
    require(all(context.dtype(index).name == "float32" for index in range(3)))
    require(element_count(context.shape(0)) > 0)
    kernel = NativeKernel.batch_normalization(
        _seen(layout, context.shape(0)), context.number("epsilon", 1e-5)
    )
    image = _image(builder, node.inputs[0], layout)
    sources = [image, *[builder.dense(name) for name in node.inputs[1:]]]
    target = _result(builder, node.outputs[0], layout)
    targets = [target, *[builder.output(name) for name in node.outputs[1:]]]
    builder.native(
        node, ("batch_normalization", kernel), sources, targets, in_place=[(target, image)],
    )  # fmt: skip


def batch_normalization_gradient(builder: Builder, node: Node) -> None:
    """Emit the gradient, which may overwrite the result's gradient."""
    context, layout = site_of(builder, node), _layout(builder, node.inputs[1])
    is_whole = context.has_output(1) and context.has_output(2)
    require(is_whole or builder.options.use_onednn)
    require(context.has_output(0) and context.dtype(0).name == "float32")
    require(element_count(context.shape(1)) > 0)
    kernel = NativeKernel.batch_normalization_gradient(
        _seen(layout, context.shape(1)),
        context.number("epsilon", 1e-5),
        not context.integer("training_mode", 1),
    )
    dy, x = (_image(builder, name, layout) for name in node.inputs[:2])
    sources = [dy, x, *[builder.dense(name) for name in node.inputs[2:]]]
    target = _result(builder, node.outputs[0], layout)
    names = (*node.outputs[1:], "", "")[:2]
    targets = [target, *[
        builder.output(name)
        if name
        else builder.room(f"{node.name}.{place}", row_major(context.shape(2)))
        for place, name in enumerate(names)
    ]]  # fmt: skip
    builder.native(
        node, ("batch_normalization_gradient", kernel), sources, targets, in_place=[(target, dy)],
    )  # fmt: skip


def _layout(builder: Builder, name: str) -> Layout:
    """Return the layout of an image: channels last, or None for row-major and any other."""
    home = builder.home(name)
    is_plain = home.desc is None or home.desc == row_major(home.shape)
    return None if is_plain else channels_last


def _image(builder: Builder, name: str, layout: Layout) -> Operand:
    home = builder.home(name)
    return builder.in_layout(name, layout(home.shape)) if layout else builder.dense(name)


def _result(builder: Builder, name: str, layout: Layout) -> Operand:
    shape = builder.value(name).static_shape
    return builder.output(name, layout(shape) if layout else None)


def _seen(layout: Layout, shape: tuple[int, ...]) -> tuple[int, int, int]:
    """Return the image's sizes as (outer, channels, inner)."""
    inner = element_count(shape[2:])
    return (shape[0] * inner, shape[1], 1) if layout else (shape[0], shape[1], inner)


def largest_gradient(builder: Builder, node: Node) -> None:
    """Emit the gradient of a MaxPool over one or two axes."""
    context, layout = site_of(builder, node), _layout(builder, node.inputs[1])
    shape, results, kernel_shape = (
        context.shape(1),
        context.shape(0),
        context.integers("kernel_shape"),
    )
    require(len(shape) in IMAGE_RANKS and context.dtype(1).name == "float32")
    require(not context.integer("storage_order", 0) and kernel_shape is not None)
    require(element_count(shape) > 0)
    assert kernel_shape is not None
    window = window_of(node, kernel_shape, shape[2:], results[2:])
    zero, one = ((0,), (1,)) if len(shape) == min(IMAGE_RANKS) else ((), ())
    kernel = NativeKernel.largest_gradient(
        (shape[0], shape[1]),
        [
            (*one, *shape[2:]), (*one, *results[2:]), (*one, *window.kernel),
            (*one, *window.strides), (*one, *window.dilations), (*zero, *window.begin),
        ],
        layout is not None,
    )  # fmt: skip
    sources = [_image(builder, name, layout) for name in node.inputs]
    target = _result(builder, node.outputs[0], layout)
    builder.native(node, ("largest_gradient", kernel), sources, [target])


def cross_entropy_gradient(builder: Builder, node: Node) -> None:
    """Emit the gradient of a mean or a sum, which may overwrite the log probabilities."""
    context = site_of(builder, node)
    reduction, shape = context.text("reduction", "mean"), context.shape(1)
    require(reduction in ("mean", "sum") and context.dtype(1).name == "float32")
    require(context.dtype(2).name == "int64" and element_count(shape) > 0)
    kernel = NativeKernel.cross_entropy_gradient(
        (shape[0], shape[1], element_count(shape[2:])),
        (reduction == "mean", "ignore_index" in node.attributes, context.has_input(3)),
        context.integer("ignore_index", 0),
        node.name,
    )
    sources = [builder.dense(name) for name in node.inputs if name]
    target = builder.output(node.outputs[0])
    in_place = [(target, sources[1])]
    builder.native(node, ("cross_entropy_gradient", kernel), sources, [target], in_place=in_place)


def gather_gradient(builder: Builder, node: Node) -> None:
    """Emit the gradient of Gather, which adds rows at the indices that selected them."""
    context = site_of(builder, node)
    shape, dtype = context.output_shape(), context.dtype(1).name
    require(context.dtype(0).name == "float32" and dtype in ("int32", "int64"))
    require(element_count(shape) > 0)
    axis = axis_of(context.integer("axis", 0), len(shape))
    length = context.integer("length", shape[axis])
    seen = element_count(shape[:axis]), length, element_count(shape[axis + 1 :])
    part = context.integer("start", 0), shape[axis]
    kernel = NativeKernel.gather_gradient(
        seen, part, element_count(context.shape(1)), dtype == "int64", node.name
    )
    sources = [builder.dense(name) for name in node.inputs]
    builder.native(node, ("gather_gradient", kernel), sources, [builder.output(node.outputs[0])])
