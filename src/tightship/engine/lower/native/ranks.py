"""Emits operators on the order of elements along one axis, and running sums."""

from tightship._core import NativeKernel
from tightship.engine.kernels.kernel_context import KernelContext, axis_of, covered, require
from tightship.engine.kernels.numbers import is_real
from tightship.engine.kernels.softmax import normalized_rows
from tightship.engine.lower.steps.builder import Builder
from tightship.engine.lower.steps.strides import site_of
from tightship.graph import DType, Node, element_count


def position(builder: Builder, node: Node) -> None:
    """Emit ArgMax or ArgMin, with the first or last position; a NaN comes before any number."""
    context = site_of(builder, node)
    rows = _around(context, axis_of(context.integer("axis", 0), len(context.shape(0))))
    require(rows[1] > 0)
    takes_last = bool(context.integer("select_last_index", 0))
    is_largest = node.operator == "ArgMax"
    kernel = covered(NativeKernel.position(context.dtype(0).name, rows, is_largest, takes_last))
    source, target = builder.dense(node.inputs[0]), builder.output(node.outputs[0])
    builder.native(node, (node.operator, kernel), [source], [target])


def hardmax(builder: Builder, node: Node) -> None:
    """Emit Hardmax, in place if the operand is not read later."""
    context = site_of(builder, node)
    require(is_real(context.dtype(0)))
    kernel = covered(NativeKernel.hardmax(context.dtype(0).name, normalized_rows(context)))
    source, target = builder.dense(node.inputs[0]), builder.output(node.outputs[0])
    builder.native(node, (node.operator, kernel), [source], [target], in_place=[(target, source)])


def top_k(builder: Builder, node: Node) -> None:
    """Emit TopK, always sorted; `k` is the length of the results' axis."""
    context = site_of(builder, node)
    require(context.has_output(0) and context.has_output(1) and len(context.shape(0)) > 0)
    axis = axis_of(context.integer("axis", -1), len(context.shape(0)))
    count, rows = context.output_shape()[axis], _around(context, axis)
    require(count <= rows[1] and context.output(1).dtype is DType.INT64)
    is_largest = bool(context.integer("largest", 1))
    kernel = covered(NativeKernel.best(context.dtype(0).name, rows, count, is_largest))
    builder.native(
        node,
        (node.operator, kernel),
        [builder.dense(node.inputs[0])],
        [builder.output(name) for name in node.outputs],
    )


def cumulative_sum(builder: Builder, node: Node) -> None:
    """Emit CumSum along a constant axis, in place if the operand is not read later."""
    context = site_of(builder, node)
    axis = context.parameter(1)
    axis = covered(axis)
    require(context.dtype(0) == context.output_dtype())
    rows = _around(context, axis_of(int(axis.reshape(())), len(context.shape(0))))
    is_exclusive = bool(context.integer("exclusive", 0))
    is_reverse = bool(context.integer("reverse", 0))
    kernel = covered(
        NativeKernel.running_sum(context.dtype(0).name, rows, is_exclusive, is_reverse)
    )
    source, target = builder.dense(node.inputs[0]), builder.output(node.outputs[0])
    builder.native(node, (node.operator, kernel), [source], [target], in_place=[(target, source)])


def _around(context: KernelContext, axis: int) -> tuple[int, int, int]:
    shape = context.shape(0)
    require(len(shape) > 0)
    return element_count(shape[:axis]), shape[axis], element_count(shape[axis + 1 :])
