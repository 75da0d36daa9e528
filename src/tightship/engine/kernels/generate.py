"""Operators that compute elements from shapes, attributes and scalars."""

import numpy as np

from tightship.engine.kernels.kernel import Array, Kernel, Operands
from tightship.engine.kernels.kernel_context import Builder, KernelContext, axis_of, require
from tightship.engine.kernels.numbers import is_number
from tightship.engine.kernels.scratch import ScratchLayout


def count_up(out: Array, step: int = 1) -> None:
    """Write 0, step, 2 * step, ... to a vector, by doubling the written part."""
    if out.size:
        out[0] = 0
    done = 1
    while done < out.size:
        more = min(done, out.size - done)
        np.add(out[:more], done * step, out=out[done : done + more])
        done += more


def shape_kernel(context: KernelContext) -> Kernel:
    shape = context.shape(0)
    end = context.node.attributes.get("end")
    require(end is None or isinstance(end, int))
    lengths = shape[context.integer("start", 0) : end if isinstance(end, int) else None]

    def run(_inputs: Operands, outputs: Operands, _: Array | None) -> None:
        outputs[0][...] = lengths

    return Kernel("Shape", run)


def size(context: KernelContext) -> Kernel:
    count = int(np.prod(context.shape(0), dtype=np.int64))

    def run(_inputs: Operands, outputs: Operands, _: Array | None) -> None:
        outputs[0].fill(count)

    return Kernel("Size", run)


def filled(context: KernelContext) -> Kernel:
    value = context.tensor("value")
    element = np.zeros((), np.float32) if value is None else value.reshape(())

    def run(_inputs: Operands, outputs: Operands, _: Array | None) -> None:
        np.copyto(outputs[0], element)

    return Kernel("ConstantOfShape", run)


def constant(context: KernelContext) -> Kernel:
    attributes = context.node.attributes
    tensor = context.tensor("value")
    names = ("value_float", "value_floats", "value_int", "value_ints")
    plain = [attributes[name] for name in names if name in attributes]
    require(tensor is not None or len(plain) == 1)
    elements = np.asarray(plain[0]) if tensor is None else tensor

    def run(_inputs: Operands, outputs: Operands, _: Array | None) -> None:
        np.copyto(outputs[0], elements, casting="same_kind")

    return Kernel("Constant", run)


def range_kernel(context: KernelContext) -> Kernel:
    require(is_number(context.output_dtype()))

    def run(inputs: Operands, outputs: Operands, _: Array | None) -> None:
        start, _limit, delta = inputs
        count_up(outputs[0])
        np.multiply(outputs[0], delta.reshape(()), out=outputs[0])
        np.add(outputs[0], start.reshape(()), out=outputs[0])

    return Kernel("Range", run)


def eye_like(context: KernelContext) -> Kernel:
    rows, columns = context.output_shape()
    shift = context.integer("k", 0)
    start = shift if shift >= 0 else -shift * columns
    count = max(min(rows + min(shift, 0), columns - max(shift, 0)), 0)

    def run(_inputs: Operands, outputs: Operands, _: Array | None) -> None:
        outputs[0].fill(0)
        outputs[0].reshape(-1)[start :: columns + 1][:count] = 1

    return Kernel("EyeLike", run)


def triangle(context: KernelContext) -> Kernel:
    """Copy the upper or lower triangle of each matrix, row by row; zero elsewhere."""
    *_, rows, columns = context.shape(0)
    upper = bool(context.integer("upper", 1))

    def run(inputs: Operands, outputs: Operands, _: Array | None) -> None:
        x, out = inputs[0], outputs[0]
        shift = int(inputs[1].reshape(())) if len(inputs) > 1 and inputs[1] is not None else 0
        for row in range(rows):
            edge = min(max(row + shift + (not upper), 0), columns)
            kept, cleared = slice(edge, None), slice(edge)
            if not upper:
                kept, cleared = cleared, kept
            np.copyto(out[..., row, kept], x[..., row, kept])
            out[..., row, cleared] = 0

    return Kernel("Trilu", run)


def one_hot(context: KernelContext) -> Kernel:
    """Write `on` where the indices give the position, else `off`; indices may be negative."""
    shape = context.shape(0)
    rank = len(shape) + 1
    axis = axis_of(context.integer("axis", -1), rank)
    depth = context.output_shape()[axis]
    layout = ScratchLayout()
    index = layout.slot(np.int64, shape)
    negative = layout.slot(np.bool_, shape)
    mask = layout.slot(np.bool_, shape)

    def run(inputs: Operands, outputs: Operands, scratch: Array | None) -> None:
        places, below, chosen = index.of(scratch), negative.of(scratch), mask.of(scratch)
        np.copyto(places, inputs[0], casting="unsafe")
        np.less(places, 0, out=below)
        np.add(places, depth, out=places, where=below)
        off, on = inputs[2]
        by_depth = np.moveaxis(outputs[0], axis, 0)
        np.copyto(outputs[0], off)
        for position in range(depth):
            np.equal(places, position, out=chosen)
            np.copyto(by_depth[position, ...], on, where=chosen)

    return Kernel("OneHot", run, layout.size_bytes)


def _running(ufunc: np.ufunc, first: int) -> Builder:
    """Make kernels of running sums or products along an axis, which may be a run-time input."""

    def build(context: KernelContext) -> Kernel:
        require(is_number(context.dtype(0)))
        exclusive, reverse = context.integer("exclusive", 0), context.integer("reverse", 0)

        def run(inputs: Operands, outputs: Operands, _: Array | None) -> None:
            axis = int(inputs[1].reshape(()))
            x, out = np.moveaxis(inputs[0], axis, 0), np.moveaxis(outputs[0], axis, 0)
            if reverse:
                x, out = x[::-1], out[::-1]
            if exclusive:
                out[:1] = first
                x, out = x[:-1], out[1:]
            ufunc.accumulate(x, axis=0, out=out, dtype=out.dtype)

        return Kernel(context.node.operator, run)

    return build


cum_prod = _running(np.multiply, 1)
cum_sum = _running(np.add, 0)
