"""Matrix products; floats by NumPy's BLAS, directly into the output."""

import numpy as np

from tightship.engine.kernels.kernel import Array, Kernel, Operands
from tightship.engine.kernels.kernel_context import KernelContext, require
from tightship.engine.kernels.numbers import is_integer, is_number, is_real
from tightship.engine.kernels.product import product
from tightship.engine.kernels.scratch import ScratchLayout


def mat_mul(context: KernelContext) -> Kernel:
    dtype = context.output_dtype()
    require(context.dtype(0) == context.dtype(1) == dtype and is_number(dtype))

    def run(inputs: Operands, outputs: Operands, _: Array | None) -> None:
        product(inputs[0], inputs[1], outputs[0])

    return Kernel("MatMul", run)


def gemm(context: KernelContext) -> Kernel:
    """Compute alpha * A' B' + beta * C; integers only if alpha and beta are 1."""
    dtype = context.output_dtype()
    alpha, beta = context.number("alpha", 1.0), context.number("beta", 1.0)
    require(is_real(dtype) or (is_integer(dtype) and alpha == beta == 1))
    transpose_a, transpose_b = context.integer("transA", 0), context.integer("transB", 0)
    adds = context.has_input(2) and beta != 0
    layout = ScratchLayout()
    scaled = layout.slot(dtype, context.shape(2) if adds and beta != 1 else (0,))

    def run(inputs: Operands, outputs: Operands, scratch: Array | None) -> None:
        (a, b), (out,) = inputs[:2], outputs
        product(a.T if transpose_a else a, b.T if transpose_b else b, out)
        if alpha != 1:
            np.multiply(out, alpha, out=out)
        if adds and beta != 1:
            term = scaled.of(scratch)
            np.multiply(inputs[2], beta, out=term)
            np.add(out, term, out=out)
        elif adds:
            np.add(out, inputs[2], out=out)

    return Kernel("Gemm", run, layout.size_bytes)


def matmul_integer(context: KernelContext) -> Kernel:
    """Multiply 8-bit integers less their zero points, in int32."""
    shape_a, shape_b = context.shape(0), context.shape(1)
    layout = ScratchLayout()
    wide_a, wide_b = layout.slot(np.int32, shape_a), layout.slot(np.int32, shape_b)

    def run(inputs: Operands, outputs: Operands, scratch: Array | None) -> None:
        a, b = wide_a.of(scratch), wide_b.of(scratch)
        subtract_zero_point(inputs[0], _operand(inputs, 2), a, per_row=True)
        subtract_zero_point(inputs[1], _operand(inputs, 3), b, per_row=False)
        product(a, b, outputs[0])

    return Kernel("MatMulInteger", run, layout.size_bytes)


def _operand(operands: Operands, index: int) -> Array | None:
    return operands[index] if index < len(operands) else None


def subtract_zero_point(x: Array, zero: Array | None, wide: Array, *, per_row: bool) -> None:
    """Write x - zero to `wide`; a vector of zero points has one for each row or column."""
    if zero is None:
        np.copyto(wide, x)
        return
    if zero.ndim == 1 and zero.size > 1 and per_row:
        zero = zero.reshape(-1, 1)
    elif zero.size == 1:
        zero = zero.reshape(())
    np.subtract(x, zero, out=wide, dtype=wide.dtype, casting="unsafe")


def qlinear_matmul(context: KernelContext) -> Kernel:
    """Multiply quantized matrices exactly in int32, then rescale and saturate."""
    target = context.output_dtype()
    require(is_integer(target) and context.dtype(1) == np.float32)
    layout = ScratchLayout()
    wide_a = layout.slot(np.int32, context.shape(0))
    wide_b = layout.slot(np.int32, context.shape(3))
    sums = layout.slot(np.int32, context.output_shape())
    real = layout.slot(np.float32, context.output_shape())
    limits = np.iinfo(target.name)

    def run(inputs: Operands, outputs: Operands, scratch: Array | None) -> None:
        a, a_scale, a_zero, b, b_scale, b_zero, scale, zero = inputs
        left, right, exact = wide_a.of(scratch), wide_b.of(scratch), sums.of(scratch)
        subtract_zero_point(a, a_zero, left, per_row=True)
        subtract_zero_point(b, b_zero, right, per_row=False)
        product(left, right, exact)
        result = real.of(scratch)
        np.copyto(result, exact, casting="unsafe")
        np.multiply(result, _per(a_scale, rows=True), out=result)
        np.multiply(result, _per(b_scale, rows=False), out=result)
        np.divide(result, _per(scale, rows=True), out=result)
        np.rint(result, out=result)
        np.add(result, _per(zero, rows=True), out=result, dtype=np.float32)
        np.clip(result, limits.min, limits.max, out=result)
        np.copyto(outputs[0], result, casting="unsafe")

    return Kernel("QLinearMatMul", run, layout.size_bytes)


def _per(parameter: Array, *, rows: bool) -> Array:
    if parameter.size == 1:
        return parameter.reshape(())
    return parameter.reshape(-1, 1) if rows and parameter.ndim == 1 else parameter


def einsum(context: KernelContext) -> Kernel:
    equation = context.text("equation", "")
    dtype = context.output_dtype()
    require(is_number(dtype) and all(v is not None for v in context.inputs))
    require(all(context.dtype(index) == dtype for index in range(len(context.inputs))))

    def run(inputs: Operands, outputs: Operands, _: Array | None) -> None:
        np.einsum(equation, *inputs, out=outputs[0], optimize=False)

    return Kernel("Einsum", run)
