"""Gradients of activations, in several passes over one block of elements at a time."""

import math
from collections.abc import Callable

import numpy as np

from tightship.engine.kernels.blocks import BLOCK_ELEMENTS
from tightship.engine.kernels.error_function import erf
from tightship.engine.kernels.kernel import Array, Kernel, Operands
from tightship.engine.kernels.kernel_context import Builder, KernelContext, require
from tightship.engine.kernels.logistic import logistic
from tightship.engine.kernels.numbers import is_real
from tightship.engine.kernels.scratch import ScratchLayout

_Slope = Callable[[KernelContext, Array, Array, Array], None]
"""Function `slope(context, v, d, t)` that computes the derivative d over one block from v, the
activation's input or output; v and d (n), t (2n) are distinct, and may be overwritten."""


def _blocked(slope: _Slope) -> Builder:
    """Multiply the gradient by a derivative, block by block."""

    def build(context: KernelContext) -> Kernel:
        dtype = context.dtype(0)
        require(is_real(dtype) and context.dtype(1) == dtype)
        work = np.dtype(np.float64 if dtype == np.float64 else np.float32)
        layout = ScratchLayout()
        slots = [layout.slot(work, (BLOCK_ELEMENTS * n,)) for n in (1, 1, 2)]

        def run(inputs: Operands, outputs: Operands, scratch: Array | None) -> None:
            v, d, t = (slot.of(scratch) for slot in slots)
            dy, source, target = (a.reshape(-1) for a in (*inputs[:2], outputs[0]))
            for start in range(0, dy.size, BLOCK_ELEMENTS):
                part = dy[start : start + BLOCK_ELEMENTS]
                count = part.size
                np.copyto(v[:count], source[start : start + count])
                slope(context, v[:count], d[:count], t[: 2 * count])
                np.multiply(part, d[:count], out=target[start : start + count], casting="unsafe")

        return Kernel(context.node.operator, run, layout.size_bytes, context.same_type(0, 1))

    return build


@_blocked
def relu(_: KernelContext, y: Array, d: Array, t: Array) -> None:  # noqa: ARG001
    np.greater(y, 0, out=d, casting="unsafe")


@_blocked
def leaky_relu(context: KernelContext, x: Array, d: Array, t: Array) -> None:  # noqa: ARG001
    alpha = context.number("alpha", 0.01)
    np.greater(x, 0, out=d, casting="unsafe")
    np.multiply(d, 1 - alpha, out=d)
    np.add(d, alpha, out=d)


@_blocked
def sigmoid(_: KernelContext, y: Array, d: Array, t: Array) -> None:  # noqa: ARG001
    np.subtract(1, y, out=d)
    np.multiply(d, y, out=d)


@_blocked
def tanh(_: KernelContext, y: Array, d: Array, t: Array) -> None:  # noqa: ARG001
    np.square(y, out=d)
    np.subtract(1, d, out=d)


@_blocked
def elu(context: KernelContext, x: Array, d: Array, t: Array) -> None:  # noqa: ARG001
    """Compute exp(x) * alpha below zero, else 1."""
    np.minimum(x, 0, out=d)
    np.exp(d, out=d)
    np.multiply(d, context.number("alpha", 1.0), out=d)
    np.greater(x, 0, out=x, casting="unsafe")
    np.copyto(d, 1, where=x != 0)


@_blocked
def softplus(_: KernelContext, x: Array, d: Array, t: Array) -> None:  # noqa: ARG001
    logistic(x, d)


@_blocked
def swish(context: KernelContext, x: Array, d: Array, t: Array) -> None:
    """Compute s + a x s (1 - s) with s the logistic function of a x."""
    rest = t[: x.size]
    np.multiply(x, context.number("alpha", 1.0), out=x)
    logistic(x, d)
    np.subtract(1, d, out=rest)
    np.multiply(rest, x, out=rest)
    np.add(rest, 1, out=rest)
    np.multiply(d, rest, out=d)


@_blocked
def hard_sigmoid(context: KernelContext, x: Array, d: Array, t: Array) -> None:
    _inside(x, d, t, context.number("alpha", 0.2), context.number("beta", 0.5))
    np.multiply(d, context.number("alpha", 0.2), out=d)


def _inside(x: Array, d: Array, t: Array, alpha: float, beta: float) -> None:
    """Make d one where alpha x + beta is between 0 and 1, zero elsewhere."""
    line, below = t.reshape(2, -1)
    np.multiply(x, alpha, out=line)
    np.add(line, beta, out=line)
    np.greater(line, 0, out=d, casting="unsafe")
    np.less(line, 1, out=below, casting="unsafe")
    np.multiply(d, below, out=d)


@_blocked
def hard_swish(_: KernelContext, x: Array, d: Array, t: Array) -> None:
    """Compute x / 3 + 1/2 where |x| < 3, 1 above, 0 below."""
    _inside(x, d, t, 1 / 6, 0.5)
    line = t[: x.size]
    np.greater_equal(x, 3, out=line, casting="unsafe")
    np.divide(x, 3, out=x)
    np.add(x, 0.5, out=x)
    np.multiply(d, x, out=d)
    np.add(d, line, out=d)


@_blocked
def error(_: KernelContext, x: Array, d: Array, t: Array) -> None:  # noqa: ARG001
    np.square(x, out=d)
    np.negative(d, out=d)
    np.exp(d, out=d)
    np.multiply(d, 2 / math.sqrt(math.pi), out=d)


@_blocked
def gelu(context: KernelContext, x: Array, d: Array, t: Array) -> None:
    if context.text("approximate", "none") == "tanh":
        _tanh_gelu(x, d, t)
        return
    np.multiply(x, 1 / math.sqrt(2), out=x)
    erf(x, d, t)
    np.add(d, 1, out=d)
    np.multiply(d, 0.5, out=d)
    slope = t[: x.size]
    np.square(x, out=slope)
    np.negative(slope, out=slope)
    np.exp(slope, out=slope)
    np.multiply(slope, x, out=slope)
    np.multiply(slope, 1 / math.sqrt(math.pi), out=slope)
    np.add(d, slope, out=d)


def _tanh_gelu(x: Array, d: Array, t: Array) -> None:
    """Compute (1 + u) / 2 + x (1 - u u) v' / 2, with u = tanh v, v = c (x + 0.044715 x x x)."""
    inner, squares = t.reshape(2, -1)
    factor = math.sqrt(2 / math.pi)
    np.square(x, out=squares)
    np.multiply(squares, 0.044715, out=inner)
    np.add(inner, 1, out=inner)
    np.multiply(inner, x, out=inner)
    np.multiply(inner, factor, out=inner)
    np.tanh(inner, out=inner)
    np.multiply(squares, 3 * 0.044715, out=squares)
    np.add(squares, 1, out=squares)
    np.multiply(squares, x, out=squares)
    np.multiply(squares, factor, out=squares)
    np.square(inner, out=d)
    np.subtract(1, d, out=d)
    np.multiply(d, squares, out=d)
    np.add(d, inner, out=d)
    np.add(d, 1, out=d)
    np.multiply(d, 0.5, out=d)


def clip(context: KernelContext) -> Kernel:
    """Pass the gradient where the input is within the limits, inclusive."""
    dtype = context.dtype(0)
    require(is_real(dtype))
    limits = np.finfo(np.float32)
    low, high = (context.number(name, float(getattr(limits, name))) for name in ("min", "max"))
    by_inputs = context.version >= 11
    layout = ScratchLayout()
    masks = [layout.slot(np.bool_, context.shape(0)) for _ in range(2)]

    def run(inputs: Operands, outputs: Operands, scratch: Array | None) -> None:
        dy, x, *given = inputs
        bounds = [*given, None, None][:2] if by_inputs else [low, high]
        inside, other = (mask.of(scratch) for mask in masks)
        inside.fill(1)
        for bound, compare in zip(bounds, (np.greater_equal, np.less_equal), strict=True):
            if bound is not None:
                compare(x, bound, out=other)
                np.logical_and(inside, other, out=inside)
        np.multiply(dy, inside, out=outputs[0])

    return Kernel("ClipGrad", run, layout.size_bytes, context.same_type(0, 1))
