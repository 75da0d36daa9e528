"""Emits resizing and pooling axis by axis, each position from a few taps of the input."""

from collections.abc import Iterator, Sequence

import numpy as np

from tightship._core import MemoryDesc, NativeKernel
from tightship.engine.kernels.kernel_context import KernelContext, covered, require
from tightship.engine.kernels.pooling import limits_of_average, place_steps, pool_window
from tightship.engine.kernels.resize import Taps, resize_taps
from tightship.engine.kernels.window import Window
from tightship.engine.lower.native.lookup import nearest
from tightship.engine.lower.steps.builder import Builder
from tightship.engine.lower.steps.layouts import dense_strides
from tightship.engine.lower.steps.strides import byte_strides, plain, site_of
from tightship.engine.program.program import Operand
from tightship.graph import DType, Node, element_count


def resize(builder: Builder, node: Node) -> None:
    context = site_of(builder, node)
    if context.text("mode", "nearest") == "nearest":
        nearest(builder, node)
    else:
        _emit(builder, node, resize_taps(context))


def largest(builder: Builder, node: Node) -> None:
    context = site_of(builder, node)
    if context.has_output(1):
        _largest_places(builder, node, context)
        return
    passes = []
    for taps, at in _pooled(pool_window(context)):
        require(bool((taps.indices == at).any(0).all()))
        passes.append(taps)
    _emit(builder, node, passes)


def _largest_places(builder: Builder, node: Node, context: KernelContext) -> None:
    """Emit a MaxPool with the place of each element, counted over the whole tensor."""
    window = pool_window(context)
    require(context.has_output(0) and 0 not in context.shape(0))
    kernel = covered(
        NativeKernel.largest_places(
            context.dtype(0).name,
            element_count(context.shape(0)[:2]),
            (window.image, window.positions, place_steps(context, window)),
            (window.kernel, window.strides, window.dilations, window.pads),
        )
    )
    source, targets = builder.dense(node.inputs[0]), [builder.output(o) for o in node.outputs]
    builder.native(node, ("MaxPool", kernel), [source], targets)


def average(builder: Builder, node: Node) -> None:
    context = site_of(builder, node)
    window = pool_window(context)
    limits = limits_of_average(context, window)
    _emit(builder, node, list(_weighed(window, limits)))


def _weighed(window: Window, limits: Sequence[tuple[int, int]]) -> Iterator[Taps]:
    """Weight each tap in the image by the inverse of its axis's count within the limits."""
    for (taps, at), (low, high) in zip(_pooled(window), limits, strict=True):
        length = window.image[taps.axis - 2]
        count = ((at >= low) & (at < high)).sum(0)
        require(bool(count.all()))
        weights = ((at >= 0) & (at < length)) / count
        yield Taps(taps.axis, taps.indices, weights.astype(np.float32))


def _pooled(
    window: Window,
) -> Iterator[tuple[Taps, np.ndarray[tuple[int, ...], np.dtype[np.int64]]]]:
    """Yield the taps of each spatial axis, padding replaced by repeats, and their positions."""
    for axis, length in enumerate(window.image):
        tap = np.arange(window.kernel[axis])[:, None] * window.dilations[axis]
        at = np.arange(window.positions[axis]) * window.strides[axis] - window.pads[axis] + tap
        inside = (at >= 0) & (at < length)
        first = np.take_along_axis(at, inside.argmax(0)[None], 0).clip(0, length - 1)
        yield Taps(axis + 2, np.where(inside, at, first), None), at


def _emit(builder: Builder, node: Node, passes: Sequence[Taps]) -> None:
    """Emit one kernel, which processes axes that shrink before those that grow."""
    value = builder.value(node.inputs[0])
    require(value.dtype is DType.FLOAT32 and len(passes) > 0 and 0 not in value.static_shape)
    source, order = _packed(builder, node.inputs[0])
    shape = list(source.shape)
    axes = []
    for taps in sorted(passes, key=lambda taps: taps.length / shape[taps.axis]):
        place = order.index(taps.axis)
        before, after = (
            element_count(tuple(shape[axis] for axis in part))
            for part in (order[:place], order[place + 1 :])
        )
        weights = [] if taps.weights is None else taps.weights.tolist()
        axes.append(((before, shape[taps.axis], after), taps.indices.tolist(), weights))
        shape[taps.axis] = taps.length
    kernel = NativeKernel.taps(axes)
    target = builder.output(node.outputs[0], _like(source, shape, order))
    builder.native(node, ("taps", kernel), [source], [target])


def _packed(builder: Builder, name: str) -> tuple[Operand, list[int]]:
    """Return a value without gaps, and its axes from the outermost to the innermost."""
    source = plain(builder, name)
    strides = byte_strides(source)
    order = sorted(range(len(strides)), key=lambda axis: -strides[axis])
    lengths = [source.shape[axis] for axis in order]
    packed = [stride * source.dtype.itemsize for stride in dense_strides(lengths)]
    if all(n == 1 or strides[axis] == wanted
           for n, axis, wanted in zip(lengths, order, packed, strict=True)):  # fmt: skip
        return source, order
    return builder.dense(name), list(range(len(strides)))


def _like(source: Operand, shape: Sequence[int], order: Sequence[int]) -> MemoryDesc | None:
    """Return the layout of another shape with the same order of axes."""
    if source.desc is None:
        return None
    dense = dense_strides([shape[axis] for axis in order])
    strides = [dense[order.index(axis)] for axis in range(len(shape))]
    return MemoryDesc(list(shape), "float32", strides)
