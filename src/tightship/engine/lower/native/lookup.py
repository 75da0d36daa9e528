"""Emits operators whose elements each come from a position along each axis, or are filled."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tightship._core import NativeKernel
from tightship.engine.kernels.kernel_context import axis_of, require
from tightship.engine.kernels.padding import padding
from tightship.engine.kernels.resize import nearest_positions
from tightship.engine.lower.steps.builder import Builder
from tightship.engine.lower.steps.layouts import channels_last
from tightship.engine.lower.steps.strides import byte_strides, image_layout, plain, site_of
from tightship.engine.lower.steps.views import same_bytes
from tightship.engine.program.program import Operand
from tightship.graph import Inline, Node

Positions = NDArray[np.int64]
"""Position in the input for each position along an axis; negative for a filling."""


def _lookup(
    builder: Builder, node: Node, axes: Sequence[Positions], filling: str | None = None
) -> None:
    """Emit one step over the axes; `filling` names the value that fills, zero by default."""
    require(len(axes) > 0)
    shape = builder.value(node.inputs[0]).static_shape
    kept = [_is_kept(positions, length) for positions, length in zip(axes, shape, strict=True)]
    if all(kept):
        require(same_bytes(builder, node))
        return
    source = _source(builder, node.inputs[0])
    strides = byte_strides(source)
    layout = image_layout(source, builder.value(node.outputs[0]).static_shape)
    if layout is not None:
        order = (0, *range(2, len(shape)), 1)
        axes, kept, strides = ([each[axis] for axis in order] for each in (axes, kept, strides))
        shape = tuple(shape[axis] for axis in order)
    item, items = source.dtype.itemsize, 1
    last = len(axes) - 1
    while kept[last] and strides[last] == item * items:
        items *= shape[last]
        last -= 1
    tables = [
        np.where(positions < 0, -1, positions * stride).tolist()
        for positions, stride in zip(axes[: last + 1], strides, strict=False)
    ]
    kernel = NativeKernel.lookup(item, items, filling is not None, tables)
    reads = [source] if filling is None else [source, builder.dense(filling)]
    builder.native(node, ("lookup", kernel), reads, [builder.output(node.outputs[0], layout)])


def _source(builder: Builder, name: str) -> Operand:
    """Return a value that strides describe: channels last if it lies in blocks of channels."""
    home = builder.home(name)
    if home.desc is None or home.desc.is_plain or len(home.shape) < 3:
        return plain(builder, name)
    return builder.in_layout(name, channels_last(home.shape, home.dtype))


def _is_kept(positions: Positions, length: int) -> bool:
    return positions.size == length and bool((positions == np.arange(length)).all())


def _along(mode: str, length: int, before: int, after: int) -> Positions:
    """Return the input position for each position of a padded axis."""
    at = np.arange(-before, length + after)
    require(mode == "constant" or length > 0 or at.size == 0)
    if mode == "edge":
        return np.clip(at, 0, length - 1)
    if mode == "wrap":
        return at % max(length, 1)
    if mode == "reflect":
        period = max(2 * (length - 1), 1)
        at = at % period
        return np.where(at < length, at, period - at)
    return np.where((at >= 0) & (at < length), at, -1)


def pad_emitter(builder: Builder, node: Node) -> None:
    context = site_of(builder, node)
    mode, pads = padding(context)
    require(mode in ("constant", "edge", "reflect", "wrap"))
    axes = [_along(mode, n, *pad) for n, pad in zip(context.shape(0), pads, strict=True)]
    filling: str | None = None
    if mode == "constant" and context.has_input(2):
        filling = node.inputs[2]
    elif mode == "constant" and context.number("value", 0.0):
        filling = f"{node.name}.filling"
        element: NDArray[Any] = np.array(context.number("value", 0.0)).astype(context.dtype(0))
        builder.add_constant(filling, Inline(element))
    _lookup(builder, node, axes, filling)


def center(builder: Builder, node: Node) -> None:
    """Pad short axes with zeros and crop long ones around the middle (CenterCropPad)."""
    context = site_of(builder, node)
    shape = context.shape(0)
    wanted = context.parameter(1)
    assert wanted is not None
    chosen = context.integers("axes") or tuple(range(len(shape)))
    axes = [np.arange(length) for length in shape]
    for axis, resized in zip(chosen, wanted.tolist(), strict=True):
        place = axis_of(axis, len(shape))
        more = resized - shape[place]
        before = more // 2 if more > 0 else -(-more // 2)
        axes[place] = _along("constant", shape[place], before, more - before)
    _lookup(builder, node, axes)


def nearest(builder: Builder, node: Node) -> None:
    """Emit Resize in mode nearest."""
    _lookup(builder, node, nearest_positions(site_of(builder, node)))
