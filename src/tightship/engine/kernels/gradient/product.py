"""Matrix products of transposed operands, and gradients of softmaxes."""

import numpy as np

from tightship.engine.kernels.kernel import Array, Kernel, Operands
from tightship.engine.kernels.kernel_context import KernelContext, require
from tightship.engine.kernels.numbers import is_real
from tightship.engine.kernels.scratch import ScratchLayout
from tightship.engine.kernels.softmax import normalized_rows


def matmul(context: KernelContext) -> Kernel:
    require(is_real(context.dtype(0)) and context.dtype(0) == context.dtype(1))
    is_a, is_b = context.integer("transA", 0), context.integer("transB", 0)

    def run(inputs: Operands, outputs: Operands, _: Array | None) -> None:
        a, b = inputs
        a = a.swapaxes(-1, -2) if is_a else a
        b = b.swapaxes(-1, -2) if is_b else b
        np.matmul(a, b, out=outputs[0])

    return Kernel("TransposedMatMul", run)


def softmax(context: KernelContext) -> Kernel:
    """Compute the gradient y (dy - sum of y dy)."""
    require(is_real(context.dtype(0)))
    rows = normalized_rows(context)
    layout = ScratchLayout()
    terms = layout.slot(context.dtype(0), rows[1:])
    total = layout.slot(context.dtype(0), (1, rows[2]))

    def run(inputs: Operands, outputs: Operands, scratch: Array | None) -> None:
        work, sums = terms.of(scratch), total.of(scratch)
        for dy, y, dx in zip(*(a.reshape(rows) for a in (*inputs, outputs[0])), strict=True):
            np.multiply(dy, y, out=work)
            np.add.reduce(work, axis=0, out=sums, keepdims=True)
            np.subtract(dy, sums, out=dx)
            np.multiply(dx, y, out=dx)

    return Kernel("SoftmaxGrad", run, layout.size_bytes, context.same_type(0))


def log_softmax(context: KernelContext) -> Kernel:
    """Compute the gradient dy - exp(y) * (sum of dy)."""
    require(is_real(context.dtype(0)))
    rows = normalized_rows(context)
    layout = ScratchLayout()
    terms = layout.slot(context.dtype(0), rows[1:])
    total = layout.slot(context.dtype(0), (1, rows[2]))

    def run(inputs: Operands, outputs: Operands, scratch: Array | None) -> None:
        work, sums = terms.of(scratch), total.of(scratch)
        for dy, y, dx in zip(*(a.reshape(rows) for a in (*inputs, outputs[0])), strict=True):
            np.add.reduce(dy, axis=0, out=sums, keepdims=True)
            np.exp(y, out=work)
            np.multiply(work, sums, out=work)
            np.subtract(dy, work, out=dx)

    return Kernel("LogSoftmaxGrad", run, layout.size_bytes, context.same_type(0))
