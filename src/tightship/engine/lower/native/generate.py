"""Emits operators that write elements by their position."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from tightship._core import NativeKernel
from tightship.engine.kernels.kernel_context import axis_of, covered, require
from tightship.engine.lower.steps.builder import Builder
from tightship.engine.lower.steps.strides import byte_strides, plain, site_of
from tightship.graph import Node, element_count


def constant_of_shape(builder: Builder, node: Node) -> None:
    value = site_of(builder, node).tensor("value")
    element = np.zeros((), np.float32) if value is None else value.reshape(())
    _fill(builder, node, [(element, 0, None, None)])


def eye_like(builder: Builder, node: Node) -> None:
    """Fill zeros, then ones on a diagonal."""
    context = site_of(builder, node)
    (rows, columns), dtype = context.output_shape(), context.output_dtype()
    shift = context.integer("k", 0)
    first = shift if shift >= 0 else -shift * columns
    count = max(min(rows + min(shift, 0), columns - max(shift, 0)), 0)
    diagonal = (np.ones((), dtype), first, [count], [columns + 1])
    _fill(builder, node, [(np.zeros((), dtype), 0, None, None), diagonal])


Filling = tuple[NDArray[Any], int, list[int] | None, list[int] | None]
"""Element, index of its first position, and shape and strides of all; None for every position."""


def _fill(builder: Builder, node: Node, fillings: list[Filling]) -> None:
    target = builder.output(node.outputs[0])
    item, count = target.dtype.itemsize, element_count(target.shape)
    kernel = NativeKernel.fills(
        [
            (element.tobytes(), first * item, shape or [count], [item * s for s in strides or [1]])
            for element, first, shape, strides in fillings
        ]
    )
    builder.native(node, ("fill", kernel), [], [target])


def triangle(builder: Builder, node: Node) -> None:
    context = site_of(builder, node)
    require(len(context.shape(0)) >= 2)
    source = plain(builder, node.inputs[0])
    reads = [source, *([builder.dense(node.inputs[1])] if context.has_input(1) else [])]
    target = builder.output(node.outputs[0])
    strides = byte_strides(source)
    kernel = NativeKernel.triangle(
        target.dtype.itemsize,
        bool(context.integer("upper", 1)),
        context.has_input(1),
        list(source.shape),
        strides,
    )
    in_place = [(target, source)] if strides == byte_strides(target) else []
    builder.native(node, ("triangle", kernel), reads, [target], in_place=in_place)


def one_hot(builder: Builder, node: Node) -> None:
    """Emit OneHot; negative indices count from the end, and those out of range mark nothing."""
    context = site_of(builder, node)
    shape, dtype = context.shape(0), context.input(0).dtype
    axis = axis_of(context.integer("axis", -1), len(shape) + 1)
    assert dtype is not None
    sizes = (element_count(shape[:axis]), context.output_shape()[axis], element_count(shape[axis:]))
    kernel = covered(NativeKernel.one_hot(context.output_dtype().itemsize, dtype.value, sizes))
    reads = [builder.dense(node.inputs[0]), builder.dense(node.inputs[2])]
    builder.native(node, ("one_hot", kernel), reads, [builder.output(node.outputs[0])])


def range_emitter(builder: Builder, node: Node) -> None:
    context = site_of(builder, node)
    dtype = context.output().dtype
    assert dtype is not None
    kernel = covered(NativeKernel.ramp(dtype.value, element_count(context.output_shape())))
    reads = [builder.dense(node.inputs[0]), builder.dense(node.inputs[2])]
    builder.native(node, ("range", kernel), reads, [builder.output(node.outputs[0])])
