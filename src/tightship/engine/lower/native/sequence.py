"""Emits operators along the steps of sequences."""

from tightship._core import NativeKernel
from tightship.engine.kernels.kernel_context import axis_of, require
from tightship.engine.lower.steps.builder import Builder
from tightship.engine.lower.steps.strides import site_of
from tightship.graph import DType, Node, element_count


def reverse_sequence(builder: Builder, node: Node) -> None:
    context = site_of(builder, node)
    shape = context.shape(0)
    batch, time = context.integer("batch_axis", 1), context.integer("time_axis", 0)
    require({batch, time} == {0, 1} and context.input(1).dtype is DType.INT64)
    row_bytes = element_count(shape[2:]) * context.dtype(0).itemsize
    kernel = NativeKernel.reverse_sequences(
        node.name, (shape[batch], shape[time], row_bytes), time == 0
    )
    reads = [builder.dense(name) for name in node.inputs]
    builder.native(node, ("reverse", kernel), reads, [builder.output(node.outputs[0])])


def tensor_scatter(builder: Builder, node: Node) -> None:
    """Append steps to a cache, in its own bytes if they have no other reader."""
    context = site_of(builder, node)
    shape, new = context.shape(0), context.shape(1)
    axis = axis_of(context.integer("axis", -2), len(shape))
    require(axis > 0 and 0 < new[axis] <= shape[axis])
    row_bytes = element_count(shape[axis + 1 :]) * context.dtype(0).itemsize
    sizes = (shape[0], element_count(shape[1:axis]), shape[axis], new[axis], row_bytes)
    is_circular = context.text("mode", "linear") == "circular"
    kernel = NativeKernel.append(node.name, sizes, context.has_input(2), is_circular)
    reads = [builder.dense(name) for name in node.inputs if name]
    target = builder.output(node.outputs[0])
    taken_over = [(target, reads[0])] if context.read_once(0) else []
    builder.native(node, ("append", kernel), reads, [target], in_place=taken_over)
