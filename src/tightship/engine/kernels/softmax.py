"""Softmax, LogSoftmax and Hardmax."""

import numpy as np

from tightship.engine.kernels.kernel import Array, Kernel, Operands
from tightship.engine.kernels.kernel_context import KernelContext, axis_of, require
from tightship.engine.kernels.numbers import is_real
from tightship.engine.kernels.scratch import ScratchLayout
from tightship.graph import element_count

ONE_AXIS_VERSION = 13
"""First opset that normalizes one axis; before it, axes from `axis` on count as one."""


def normalized_rows(context: KernelContext) -> tuple[int, int, int]:
    """Return the shape as (before, along, after) the normalized axis or axes."""
    shape = context.shape(0)
    together = context.version < ONE_AXIS_VERSION
    axis = context.integer("axis", 1 if together else -1)
    axis += len(shape) if axis < 0 else 0
    require(0 <= axis <= len(shape) if together else axis_of(axis, len(shape)) == axis)
    before = element_count(shape[:axis])
    if together or not shape:
        return before, element_count(shape[axis:]), 1
    return before, shape[axis], element_count(shape[axis + 1 :])


def softmax_kernel(context: KernelContext) -> Kernel:
    require(is_real(context.dtype(0)))
    rows = normalized_rows(context)
    layout = ScratchLayout()
    total = layout.slot(context.dtype(0), (rows[0], 1, rows[2]))

    def run(inputs: Operands, outputs: Operands, scratch: Array | None) -> None:
        x, out, sums = inputs[0].reshape(rows), outputs[0].reshape(rows), total.of(scratch)
        np.maximum.reduce(x, axis=1, out=sums, keepdims=True, initial=-np.inf)
        np.subtract(x, sums, out=out)
        np.exp(out, out=out)
        np.add.reduce(out, axis=1, out=sums, keepdims=True)
        np.divide(out, sums, out=out)

    return Kernel("Softmax", run, layout.size_bytes, context.same_type(0))


def log_softmax(context: KernelContext) -> Kernel:
    dtype = context.dtype(0)
    require(is_real(dtype))
    rows = normalized_rows(context)
    layout = ScratchLayout()
    total = layout.slot(dtype, (rows[0], 1, rows[2]))
    terms = layout.slot(dtype, (rows[1], rows[2]))

    def run(inputs: Operands, outputs: Operands, scratch: Array | None) -> None:
        x, out, sums = inputs[0].reshape(rows), outputs[0].reshape(rows), total.of(scratch)
        np.maximum.reduce(x, axis=1, out=sums, keepdims=True, initial=-np.inf)
        np.subtract(x, sums, out=out)
        work = terms.of(scratch)
        for index in range(rows[0]):
            np.exp(out[index], out=work)
            np.add.reduce(work, axis=0, out=sums[index], keepdims=True)
        np.log(sums, out=sums)
        np.subtract(out, sums, out=out)

    return Kernel("LogSoftmax", run, layout.size_bytes, context.same_type(0))


def hardmax(context: KernelContext) -> Kernel:
    """Write one at the first largest element, zero elsewhere."""
    dtype = context.dtype(0)
    require(is_real(dtype))
    rows = normalized_rows(context)
    layout = ScratchLayout()
    moved = layout.slot(dtype, (rows[0], rows[2], rows[1]))
    place = layout.slot(np.int64, (rows[0], rows[2]))

    def run(inputs: Operands, outputs: Operands, scratch: Array | None) -> None:
        x, out = inputs[0].reshape(rows), outputs[0].reshape(rows)
        lines, index = moved.of(scratch), place.of(scratch)
        np.copyto(lines, x.transpose(0, 2, 1))
        np.argmax(lines, axis=-1, out=index)
        out.fill(0)
        for position in range(rows[1]):
            np.equal(index, position, out=out[:, position, :], casting="unsafe")

    return Kernel("Hardmax", run, layout.size_bytes)
