"""Emits operators along the steps of sequences."""

from functools import partial
from itertools import pairwise

from tightship._core import NativeKernel
from tightship.engine.kernels.kernel_context import axis_of, require
from tightship.engine.lower.steps.builder import Builder
from tightship.engine.lower.steps.layouts import dense_strides
from tightship.engine.lower.steps.strides import byte_strides, plain, site_of
from tightship.engine.program.program import Operand
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
    update, strides = _update(builder, node.inputs[1], axis)
    kernel = partial(
        NativeKernel.append, sizes=sizes, update_strides=strides, has_firsts=context.has_input(2),
        is_circular=is_circular,
    )  # fmt: skip
    starts = [builder.dense(name) for name in node.inputs[2:] if name]
    reads = [builder.dense(node.inputs[0]), update, *starts]
    target = builder.output(node.outputs[0])
    taken_over = [(target, reads[0])] if context.read_once(0) else []
    builder.native(node, ("append", kernel), reads, [target], in_place=taken_over)


def append_rows(builder: Builder, node: Node) -> None:
    """Append float32 steps to a cache of another type, likewise; they are rounded to it."""
    context = site_of(builder, node)
    shape, new = context.shape(0), context.shape(1)
    axis = context.integer("axis", -2)
    inside, width = element_count(new[axis + 1 :]), new[-1] if axis < len(new) - 1 else 1
    row_bytes = inside * context.dtype(1).itemsize
    sizes = (shape[0], element_count(shape[1:axis]), shape[axis], new[axis], row_bytes)
    update, strides = _update(builder, node.inputs[1], axis)
    kernel = partial(
        NativeKernel.append, sizes=sizes, update_strides=strides, has_firsts=context.has_input(2),
        is_circular=False, type=context.dtype(0).name, width=width,
    )  # fmt: skip
    starts = [builder.dense(name) for name in node.inputs[2:] if name]
    reads = [builder.dense(node.inputs[0]), update, *starts]
    target = builder.output(node.outputs[0])
    taken_over = [(target, reads[0])] if context.read_once(0) else []
    builder.native(node, ("append", kernel), reads, [target], in_place=taken_over)


def _update(builder: Builder, name: str, axis: int) -> tuple[Operand, list[int]]:
    """Return new steps, and their byte strides between batches, groups and steps.

    They are read as they lie, if each step's bytes are adjacent and one stride leads from group to
    group; else from a row-major copy.
    """
    operand = plain(builder, name)
    strides = _append_strides(operand, axis)
    if strides is None:
        operand = builder.dense(name)
        strides = _append_strides(operand, axis)
    assert strides is not None, operand
    return operand, strides


def _append_strides(operand: Operand, axis: int) -> list[int] | None:
    own, shape = byte_strides(operand), operand.shape
    row = [stride * operand.dtype.itemsize for stride in dense_strides(shape[axis + 1 :])]
    inside = zip(shape[axis + 1 :], own[axis + 1 :], row, strict=True)
    groups = [(n, s) for n, s in zip(shape[1:axis], own[1:axis], strict=True) if n != 1]
    if any(n != 1 and s != wanted for n, s, wanted in inside):
        return None
    if any(s != n * t for (_, s), (n, t) in pairwise(groups)):
        return None
    return [own[0], groups[-1][1] if groups else 0, own[axis]]
