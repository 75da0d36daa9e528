"""Elementwise operators with broadcasting: one ufunc call or a few, into the output."""

from collections.abc import Sequence

import numpy as np

from tightship.engine.kernels.kernel import Array, Kernel, Operands
from tightship.engine.kernels.kernel_context import Builder, KernelContext, require
from tightship.engine.kernels.numbers import is_brain_float, is_integer, is_number, is_real
from tightship.engine.kernels.scratch import ScratchLayout


def _ufunc_kernel(context: KernelContext, ufunc: np.ufunc) -> Kernel:
    """Make a kernel of one ufunc over all inputs, rounded as its loop for their dtypes does."""
    types = [context.dtype(index) for index in range(ufunc.nin)]
    require(len(context.node.inputs) == ufunc.nin and _covers(ufunc, types, context.output_dtype()))

    def run(inputs: Operands, outputs: Operands, _: Array | None) -> None:
        ufunc(*_aligned(inputs, context), out=outputs[0], casting="unsafe")

    return Kernel(context.node.operator, run, in_place=context.same_type(*range(ufunc.nin)))


def _covers(
    ufunc: np.ufunc, types: Sequence[np.dtype[np.generic]], output: np.dtype[np.generic]
) -> bool:
    try:
        resolved = ufunc.resolve_dtypes((*types, None))
    except TypeError:
        return False
    return bool(resolved[-1] == output)


def _aligned(inputs: Operands, context: KernelContext) -> Operands:
    """Reshape inputs to broadcast as in NumPy; before opset 7, `axis` placed the second one."""
    if context.version >= 7 or len(inputs) != 2 or "axis" not in context.node.attributes:
        return inputs
    left, right = inputs
    axis = context.integer("axis", 0)
    start = axis + left.ndim if axis < 0 else axis
    trailing = left.ndim - start - right.ndim
    return left, right.reshape(right.shape + (1,) * trailing)


def ufunc(name: str) -> Builder:
    """Make the kernels of a function of NumPy's, by its name there."""
    return lambda context: _ufunc_kernel(context, getattr(np, name))


def divide(context: KernelContext) -> Kernel:
    """Divide; quotients of integers are truncated toward zero."""
    dtype = context.dtype(0)
    if not is_integer(dtype):
        return _ufunc_kernel(context, np.true_divide)
    if dtype.kind == "u":
        return _ufunc_kernel(context, np.floor_divide)

    def run(inputs: Operands, outputs: Operands, _: Array | None) -> None:
        (left, right), (out,) = _aligned(inputs, context), outputs
        np.fmod(left, right, out=out)
        np.subtract(left, out, out=out)
        np.floor_divide(out, right, out=out)

    return Kernel("Div", run)


def power(context: KernelContext) -> Kernel:
    """Compute powers in the dtype of the base; negative powers of integers are not covered."""
    base, exponent, output = context.dtype(0), context.dtype(1), context.output_dtype()
    require(base == output and is_number(base) and is_number(exponent))
    if is_integer(base) and exponent.kind == "i":
        known = context.parameter(1)
        require(known is not None and bool(np.all(known >= np.zeros((), known.dtype))))
    loop = base if is_real(base) else None

    def run(inputs: Operands, outputs: Operands, _: Array | None) -> None:
        left, right = _aligned(inputs, context)
        np.power(left, right, out=outputs[0], dtype=loop, casting="unsafe")

    return Kernel("Pow", run, in_place=context.same_type(0, 1))


def modulo(context: KernelContext) -> Kernel:
    """Compute remainders with the sign of the divisor, or with `fmod` that of the dividend."""
    return _ufunc_kernel(context, np.fmod if context.integer("fmod", 0) else np.remainder)


def bit_shift(context: KernelContext) -> Kernel:
    right = context.text("direction", "") == "RIGHT"
    return _ufunc_kernel(context, np.right_shift if right else np.left_shift)


def folded(name: str, *, mean: bool = False) -> Builder:
    """Fold any number of inputs from the left by a function of NumPy's."""
    ufunc: np.ufunc = getattr(np, name)

    def build(context: KernelContext) -> Kernel:
        types = [context.dtype(index) for index in range(len(context.inputs))]
        output = context.output_dtype()
        require(all(dtype == output for dtype in types) and _covers(ufunc, [output] * 2, output))
        count = len(types)

        def run(inputs: Operands, outputs: Operands, _: Array | None) -> None:
            (out,) = outputs
            if count == 1:
                np.copyto(out, inputs[0])
            else:
                ufunc(inputs[0], inputs[1], out=out)
            for operand in inputs[2:]:
                ufunc(out, operand, out=out)
            if mean:
                np.true_divide(out, count, out=out, casting="unsafe")

        pairs = context.same_type(0, 1) if count <= 2 else context.read_once(0, 1)
        return Kernel(context.node.operator, run, in_place=pairs)

    return build


def where_kernel(context: KernelContext) -> Kernel:
    def run(inputs: Operands, outputs: Operands, _: Array | None) -> None:
        condition, chosen, other = inputs
        np.copyto(outputs[0], other)
        np.copyto(outputs[0], chosen, where=condition)

    return Kernel("Where", run, in_place=context.read_once(2))


def clip(context: KernelContext) -> Kernel:
    """Clip by attributes before opset 11, by inputs since; a NaN stays NaN."""
    dtype = context.dtype(0)
    require(is_number(dtype) or is_brain_float(dtype))
    if context.version >= 11:
        return Kernel("Clip", _clip_by_inputs, in_place=context.read_once(0))
    limits = np.finfo(np.float32)
    low = context.number("min", float(limits.min))
    high = context.number("max", float(limits.max))

    def run(inputs: Operands, outputs: Operands, _: Array | None) -> None:
        np.maximum(inputs[0], low, out=outputs[0], casting="unsafe")
        np.minimum(outputs[0], high, out=outputs[0], casting="unsafe")

    return Kernel("Clip", run, in_place=context.read_once(0))


def _clip_by_inputs(inputs: Operands, outputs: Operands, _: Array | None) -> None:
    (out,) = outputs
    low = inputs[1] if len(inputs) > 1 else None
    high = inputs[2] if len(inputs) > 2 else None
    if low is None:
        np.copyto(out, inputs[0])
    else:
        np.maximum(inputs[0], low.reshape(()), out=out)
    if high is not None:
        np.minimum(out, high.reshape(()), out=out)


def is_infinite(context: KernelContext) -> Kernel:
    positive = bool(context.integer("detect_positive", 1))
    negative = bool(context.integer("detect_negative", 1))
    if positive and negative:
        return _ufunc_kernel(context, np.isinf)
    require(is_real(context.dtype(0)))
    infinity = np.inf if positive else -np.inf

    def run(inputs: Operands, outputs: Operands, _: Array | None) -> None:
        if positive or negative:
            np.equal(inputs[0], infinity, out=outputs[0])
        else:
            outputs[0].fill(0)

    return Kernel("IsInf", run)


def prelu(context: KernelContext) -> Kernel:
    """Compute `x` if positive, else `slope * x`."""
    require(context.dtype(0) == context.dtype(1) == context.output_dtype())
    rank, slope_shape = len(context.shape(0)), context.shape(1)
    if context.version < 7 and len(slope_shape) == 1 and rank > 1:
        slope_shape = slope_shape + (1,) * (rank - 2)
    layout = ScratchLayout()
    mask = layout.slot(np.bool_, context.output_shape())

    def run(inputs: Operands, outputs: Operands, scratch: Array | None) -> None:
        (x, slope), (out,) = inputs, outputs
        positive = mask.of(scratch)
        np.greater(x, 0, out=positive)
        np.logical_not(positive, out=positive)
        np.copyto(out, x)
        np.multiply(out, slope.reshape(slope_shape), out=out, where=positive)

    return Kernel("PRelu", run, layout.size_bytes, context.read_once(0))


mean = folded("add", mean=True)
