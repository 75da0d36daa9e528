"""Activations, computed in several passes over one block of elements, which stays in cache."""

from collections.abc import Callable
from functools import partial

import numpy as np

from tightship.engine.kernels.blocks import BLOCK_ELEMENTS
from tightship.engine.kernels.error_function import erf
from tightship.engine.kernels.kernel import Array, Kernel, Operands
from tightship.engine.kernels.kernel_context import Builder, KernelContext, require
from tightship.engine.kernels.logistic import logistic
from tightship.engine.kernels.numbers import is_brain_float, is_number, is_real
from tightship.engine.kernels.scratch import ScratchLayout

Passes = Callable[[KernelContext, Array, Array, Array], None]
"""Function `passes(context, x, y, t)` that computes y = f(x) over one block.

Arrays x and y (n) and t (n or 2n) are distinct; all three may be overwritten.
"""


def blocked(passes: Passes, *, temporaries: int = 1) -> Builder:
    """Apply `passes` block by block, in float32 where the dtype is narrower."""

    def build(context: KernelContext) -> Kernel:
        dtype = context.dtype(0)
        require(is_real(dtype) or is_brain_float(dtype))
        require(dtype == context.output_dtype())
        work = np.dtype(np.float64 if dtype == np.float64 else np.float32)
        layout = ScratchLayout()
        slots = [layout.slot(work, (BLOCK_ELEMENTS * n,)) for n in (1, 1, temporaries)]

        def run(inputs: Operands, outputs: Operands, scratch: Array | None) -> None:
            x, y, t = (slot.of(scratch) for slot in slots)
            source, target = inputs[0].reshape(-1), outputs[0].reshape(-1)
            for start in range(0, source.size, BLOCK_ELEMENTS):
                part = source[start : start + BLOCK_ELEMENTS]
                count = part.size
                np.copyto(x[:count], part)
                passes(context, x[:count], y[:count], t[: count * temporaries])
                np.copyto(target[start : start + count], y[:count], casting="unsafe")

        return Kernel(context.node.operator, run, layout.size_bytes, context.same_type(0))

    return build


def relu(context: KernelContext) -> Kernel:
    require(is_number(context.dtype(0)) or is_brain_float(context.dtype(0)))
    zero = np.zeros((), context.dtype(0))

    def run(inputs: Operands, outputs: Operands, _: Array | None) -> None:
        np.maximum(inputs[0], zero, out=outputs[0])

    return Kernel("Relu", run, in_place=context.same_type(0))


@blocked
def leaky_relu(context: KernelContext, x: Array, y: Array, t: Array) -> None:
    np.minimum(x, 0, out=t)
    np.multiply(t, context.number("alpha", 0.01), out=t)
    np.maximum(x, 0, out=y)
    np.add(y, t, out=y)


@blocked
def sigmoid(_: KernelContext, x: Array, y: Array, t: Array) -> None:  # noqa: ARG001
    logistic(x, y)


@blocked
def swish(context: KernelContext, x: Array, y: Array, t: Array) -> None:
    np.multiply(x, context.number("alpha", 1.0), out=t)
    logistic(t, y)
    np.multiply(y, x, out=y)


def _add_exponential_part(x: Array, y: Array, t: Array, scale: float) -> None:
    """Compute y = max(x, 0) + scale * (exp(min(x, 0)) - 1)."""
    np.minimum(x, 0, out=t)
    np.expm1(t, out=t)
    np.multiply(t, scale, out=t)
    np.maximum(x, 0, out=y)
    np.add(y, t, out=y)


@blocked
def elu(context: KernelContext, x: Array, y: Array, t: Array) -> None:
    _add_exponential_part(x, y, t, context.number("alpha", 1.0))


@blocked
def selu(context: KernelContext, x: Array, y: Array, t: Array) -> None:
    old = context.version < 6
    alpha = context.number("alpha", 1.6732 if old else 1.67326319217681884765625)
    _add_exponential_part(x, y, t, alpha)
    np.multiply(y, context.number("gamma", 1.0507 if old else 1.05070102214813232421875), out=y)


@blocked
def celu(context: KernelContext, x: Array, y: Array, t: Array) -> None:
    alpha = context.number("alpha", 1.0)
    np.minimum(x, 0, out=t)
    np.divide(t, alpha, out=t)
    np.expm1(t, out=t)
    np.multiply(t, alpha, out=t)
    np.maximum(x, 0, out=y)
    np.add(y, t, out=y)


def _hard_sigmoid_of(x: Array, y: Array, alpha: float, beta: float) -> None:
    np.multiply(x, alpha, out=y)
    np.add(y, beta, out=y)
    np.maximum(y, 0, out=y)
    np.minimum(y, 1, out=y)


@blocked
def hard_sigmoid(context: KernelContext, x: Array, y: Array, t: Array) -> None:  # noqa: ARG001
    _hard_sigmoid_of(x, y, context.number("alpha", 0.2), context.number("beta", 0.5))


@blocked
def hard_swish(_: KernelContext, x: Array, y: Array, t: Array) -> None:
    _hard_sigmoid_of(x, t, 1 / 6, 0.5)
    np.multiply(x, t, out=y)


def _softplus_of(x: Array, y: Array, t: Array) -> None:
    """Compute y = max(x, 0) + log(1 + exp(-|x|)), which never overflows."""
    np.absolute(x, out=t)
    np.negative(t, out=t)
    np.exp(t, out=t)
    np.log1p(t, out=t)
    np.maximum(x, 0, out=y)
    np.add(y, t, out=y)


@blocked
def softplus(_: KernelContext, x: Array, y: Array, t: Array) -> None:
    _softplus_of(x, y, t)


@blocked
def mish(_: KernelContext, x: Array, y: Array, t: Array) -> None:
    _softplus_of(x, y, t)
    np.tanh(y, out=y)
    np.multiply(x, y, out=y)


@blocked
def softsign(_: KernelContext, x: Array, y: Array, t: Array) -> None:
    np.absolute(x, out=t)
    np.add(t, 1, out=t)
    np.divide(x, t, out=y)


@blocked
def thresholded_relu(context: KernelContext, x: Array, y: Array, t: Array) -> None:
    above = t.view(np.bool_)[: x.size]
    np.greater(x, context.number("alpha", 1.0), out=above)
    y.fill(0)
    np.copyto(y, x, where=above)


@blocked
def shrink(context: KernelContext, x: Array, y: Array, t: Array) -> None:
    bias, limit = context.number("bias", 0.0), context.number("lambd", 0.5)
    chosen = t.view(np.bool_)[: x.size]
    y.fill(0)
    np.less(x, -limit, out=chosen)
    np.add(x, bias, out=y, where=chosen)
    np.greater(x, limit, out=chosen)
    np.subtract(x, bias, out=y, where=chosen)


@partial(blocked, temporaries=2)
def error(_: KernelContext, x: Array, y: Array, t: Array) -> None:
    erf(x, y, t)


@partial(blocked, temporaries=2)
def gelu(context: KernelContext, x: Array, y: Array, t: Array) -> None:
    if context.text("approximate", "none") == "tanh":
        np.square(x, out=y)
        np.multiply(y, 0.044715, out=y)
        np.add(y, 1, out=y)
        np.multiply(y, x, out=y)
        np.multiply(y, (2 / np.pi) ** 0.5, out=y)
        np.tanh(y, out=y)
    else:
        np.multiply(x, 0.5**0.5, out=x)
        erf(x, y, t)
        np.multiply(x, 2**0.5, out=x)
    np.add(y, 1, out=y)
    np.multiply(y, 0.5, out=y)
    np.multiply(y, x, out=y)
