"""Emits normalization and softmax over rows of a row-major operand."""

from collections.abc import Callable
from dataclasses import dataclass

from tightship._core import NativeKernel
from tightship.engine.kernels.kernel_context import KernelContext, axis_of, covered, require
from tightship.engine.kernels.numbers import is_brain_float, is_real
from tightship.engine.kernels.softmax import normalized_rows
from tightship.engine.lower.steps.builder import Builder
from tightship.engine.lower.steps.strides import site_of
from tightship.graph import Node, element_count


@dataclass(frozen=True, slots=True)
class Rows:
    """Rows of `segments` segments; parameters are given by element or by segment of a row."""

    count: int
    segments: int
    segment_length: int
    parameters: int
    by_segment: bool = True


def _emitter(rows_of: Callable[[KernelContext], Rows]) -> Callable[[Builder, Node], None]:
    """Emit a normalization of the rows that a node has."""
    return lambda builder, node: _emit(builder, node, rows_of)


def _emit(builder: Builder, node: Node, rows_of: Callable[[KernelContext], Rows]) -> None:
    """Emit one kernel over rows, in place where the operand dies; statistics where asked for."""
    context = site_of(builder, node)
    dtype = context.dtype(0)
    require((is_real(dtype) or is_brain_float(dtype)) and dtype == context.output_dtype())
    rows = rows_of(context)
    names = [name for name in node.inputs if name]
    for index in range(1, len(node.inputs)):
        if context.has_input(index):
            require(context.dtype(index) == dtype)
            require(element_count(context.shape(index)) == rows.parameters)
    wide = "float64" if dtype.name == "float64" else "float32"
    for index in range(1, len(node.outputs)):
        require(not context.has_output(index) or context.output_dtype(index).name == wide)
    kernel = covered(
        NativeKernel.normalization(
            dtype.name,
            (rows.count, rows.segments, rows.segment_length, rows.parameters),
            rows.by_segment,
            [
                context.has_input(1),
                context.has_input(2),
                context.has_output(1),
                context.has_output(2),
            ],
            node.operator != "RMSNormalization",
            context.number("epsilon", 1e-5),
        )
    )
    sources = [builder.dense(name) for name in names]
    targets = [builder.output(name) for name in node.outputs if name]
    in_place = [(targets[0], sources[0])] if names.count(names[0]) == 1 else []
    builder.native(node, (node.operator, kernel), sources, targets, in_place=in_place)


@_emitter
def over_trailing(context: KernelContext) -> Rows:
    """Check that parameters have the shape of the normalized axes, without broadcasting."""
    shape = context.shape(0)
    axis = axis_of(context.integer("axis", -1), len(shape))
    columns = element_count(shape[axis:])
    wanted = [length for length in shape[axis:] if length != 1]
    for index in range(1, len(context.inputs)):
        if context.has_input(index):
            require([length for length in context.shape(index) if length != 1] == wanted)
            require(len(context.shape(index)) <= len(shape) - axis)
    return Rows(element_count(shape[:axis]), 1, columns, columns, by_segment=False)


@_emitter
def instance(context: KernelContext) -> Rows:
    batch, channels, *spatial = context.shape(0)
    return Rows(batch * channels, 1, element_count(spatial), channels)


@_emitter
def group(context: KernelContext) -> Rows:
    """Scale and bias are one for each group before opset 21, for each channel since."""
    batch, channels, *spatial = context.shape(0)
    groups = context.integer("num_groups", 1)
    space, each = element_count(spatial), channels // groups
    if context.version < 21:
        return Rows(batch * groups, 1, each * space, groups)
    return Rows(batch * groups, each, space, channels)


def softmax(builder: Builder, node: Node) -> None:
    """Emit Softmax or LogSoftmax along any axis, in place if the operand is not read later."""
    context = site_of(builder, node)
    require(context.dtype(0) == context.output_dtype())
    kernel = covered(
        NativeKernel.softmax(
            context.dtype(0).name, normalized_rows(context), node.operator == "LogSoftmax"
        )
    )
    source, target = builder.dense(node.inputs[0]), builder.output(node.outputs[0])
    builder.native(node, (node.operator, kernel), [source], [target], in_place=[(target, source)])
