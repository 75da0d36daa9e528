"""Batch normalization in training, and gradients of normalizations."""

import numpy as np

from tightship.engine.kernels.blocks import BLOCK_ELEMENTS
from tightship.engine.kernels.kernel import Array, Kernel, Operands
from tightship.engine.kernels.kernel_context import KernelContext, axis_of, require
from tightship.engine.kernels.numbers import is_real
from tightship.engine.kernels.scratch import ScratchLayout
from tightship.graph import element_count


def batch(context: KernelContext) -> Kernel:
    """Normalize by the statistics of the batch, and write them."""
    dtype, shape = context.dtype(0), context.shape(0)
    require(is_real(dtype) and len(shape) >= 2)
    flat = (shape[0], shape[1], element_count(shape[2:]))
    count, epsilon = flat[0] * flat[2], context.number("epsilon", 1e-5)
    layout = ScratchLayout()
    sums = layout.slot(np.float64, (shape[1],))
    factors = layout.slot(dtype, (shape[1],))

    def run(inputs: Operands, outputs: Operands, scratch: Array | None) -> None:
        x, y, total = inputs[0].reshape(flat), outputs[0].reshape(flat), sums.of(scratch)
        mean, variance, factor = outputs[1], outputs[2], factors.of(scratch)
        np.add.reduce(x, axis=(0, 2), out=total)
        np.divide(total, count, out=mean, casting="unsafe")
        np.subtract(x, mean[:, None], out=y)
        _sums_of_products(y, y, total)
        np.divide(total, count, out=variance, casting="unsafe")
        np.add(variance, epsilon, out=factor)
        np.sqrt(factor, out=factor)
        np.divide(inputs[1], factor, out=factor)
        np.multiply(y, factor[:, None], out=y)
        np.add(y, inputs[2][:, None], out=y)

    return Kernel(context.node.operator, run, layout.size_bytes, context.same_type(0))


def _sums_of_products(a: Array, b: Array, total: Array) -> None:
    """Sum over all of three axes but axis 1, in float64, one image at a time."""
    total.fill(0)
    for left, right in zip(a, b, strict=True):
        total += np.einsum("cs,cs->c", left, right)


def batch_gradient(context: KernelContext) -> Kernel:
    """Compute the gradient for statistics of the batch, or for given ones as constants."""
    dtype, shape = context.dtype(0), context.shape(0)
    require(is_real(dtype) and len(shape) >= 2)
    flat = (shape[0], shape[1], element_count(shape[2:]))
    count, epsilon = flat[0] * flat[2], context.number("epsilon", 1e-5)
    is_training = bool(context.integer("training_mode", 1))
    layout = ScratchLayout()
    centred = layout.slot(dtype, flat[1:])
    slots = [layout.slot(np.float64, (shape[1],)) for _ in range(3)]

    def run(inputs: Operands, outputs: Operands, scratch: Array | None) -> None:
        dy, x = inputs[0].reshape(flat), inputs[1].reshape(flat)
        scale, mean, variance = inputs[2:]
        block, (bias_sum, scale_sum, inverse) = centred.of(scratch), (s.of(scratch) for s in slots)
        np.add(variance, epsilon, out=inverse)
        np.sqrt(inverse, out=inverse)
        np.reciprocal(inverse, out=inverse)
        np.add.reduce(dy, axis=(0, 2), out=bias_sum)
        scale_sum.fill(0)
        for image, gradient in zip(x, dy, strict=True):
            np.subtract(image, mean[:, None], out=block)
            scale_sum += np.einsum("cs,cs->c", gradient, block)
        np.multiply(scale_sum, inverse, out=scale_sum)
        for index, total in ((1, scale_sum), (2, bias_sum)):
            if index < len(outputs) and outputs[index] is not None:
                np.copyto(outputs[index], total, casting="unsafe")
        if outputs[0] is None:
            return
        dx = outputs[0].reshape(flat)
        if is_training:
            np.divide(bias_sum, count, out=bias_sum)
            np.divide(scale_sum, count, out=scale_sum)
            np.multiply(scale_sum, inverse, out=scale_sum)
        np.multiply(inverse, scale, out=inverse)
        for image, gradient, target in zip(x, dy, dx, strict=True):
            np.copyto(target, gradient)
            if is_training:
                np.subtract(image, mean[:, None], out=block)
                np.multiply(block, scale_sum[:, None], out=block, casting="unsafe")
                np.subtract(target, block, out=target)
                np.subtract(target, bias_sum[:, None], out=target, casting="unsafe")
            np.multiply(target, inverse[:, None], out=target, casting="unsafe")

    return Kernel("BatchNormalizationGrad", run, layout.size_bytes, _over(context))


def layer_gradient(context: KernelContext) -> Kernel:
    """Compute the gradient, a block of rows at a time."""
    dtype, shape = context.dtype(0), context.shape(0)
    axis = axis_of(context.integer("axis", -1), len(shape))
    length = element_count(shape[axis:])
    require(is_real(dtype) and element_count(context.shape(2)) == length)
    rows = element_count(shape[:axis])
    step = max(1, min(BLOCK_ELEMENTS // max(length, 1), rows))
    layout = ScratchLayout()
    blocks = [layout.slot(dtype, (step, length)) for _ in range(2)]
    sums = [layout.slot(np.float64, (length,)) for _ in range(2)]
    means = [layout.slot(dtype, (step, 1)) for _ in range(2)]

    def run(inputs: Operands, outputs: Operands, scratch: Array | None) -> None:
        dy, x = (array.reshape((rows, length)) for array in inputs[:2])
        scale, mean, inverse = inputs[2].reshape(-1), *(a.reshape(-1, 1) for a in inputs[3:])
        totals = [slot.of(scratch) for slot in sums]
        for total in totals:
            total.fill(0)
        dx = None if outputs[0] is None else outputs[0].reshape((rows, length))
        for start in range(0, rows, step):
            part = slice(start, min(start + step, rows))
            count = part.stop - start
            normal, product = (slot.of(scratch)[:count] for slot in blocks)
            np.subtract(x[part], mean[part], out=normal)
            np.multiply(normal, inverse[part], out=normal)
            totals[0] += np.einsum("rl,rl->l", dy[part], normal)
            totals[1] += np.add.reduce(dy[part], axis=0)
            if dx is not None:
                averages = [slot.of(scratch)[:count] for slot in means]
                np.multiply(dy[part], scale, out=product)
                _project(product, normal, averages)
                np.multiply(product, inverse[part], out=dx[part])
        for index, total in enumerate(totals, start=1):
            if index < len(outputs) and outputs[index] is not None:
                np.copyto(outputs[index].reshape(-1), total, casting="unsafe")

    return Kernel("LayerNormalizationGrad", run, layout.size_bytes, _over(context))


def _over(context: KernelContext) -> tuple[tuple[int, int], ...]:
    """Return pairs that may share bytes: a gradient of data may overwrite the result's gradient."""
    return context.same_type(0) if context.has_output(0) else ()


def _project(gradient: Array, normal: Array, averages: list[Array]) -> None:
    """Subtract from each row its mean, and its part along the normalized row; both change."""
    length = gradient.shape[1]
    mean, along = averages
    np.add.reduce(gradient, axis=1, out=mean, keepdims=True)
    np.divide(mean, length, out=mean)
    np.einsum("rl,rl->r", gradient, normal, out=along[:, 0])
    np.divide(along, length, out=along)
    np.multiply(normal, along, out=normal)
    np.subtract(gradient, normal, out=gradient)
    np.subtract(gradient, mean, out=gradient)
