"""Normalization by mean and variance, a block of rows at a time."""

import numpy as np

from tightship.engine.kernels.blocks import BLOCK_ELEMENTS
from tightship.engine.kernels.kernel import Array, Kernel, Operands
from tightship.engine.kernels.kernel_context import KernelContext, axis_of, require
from tightship.engine.kernels.numbers import is_brain_float, is_real
from tightship.engine.kernels.scratch import ScratchLayout, Slot
from tightship.graph import element_count


class Rows:
    """Scratch to normalize rows of one length, in float32 if the dtype is narrower."""

    def __init__(self, context: KernelContext, length: int, layout: ScratchLayout) -> None:
        dtype = context.dtype(0)
        require(is_real(dtype) or is_brain_float(dtype))
        work = np.dtype(np.float64 if dtype == np.float64 else np.float32)
        self.epsilon = context.number("epsilon", 1e-5)
        self.length = length
        self.count = max(1, BLOCK_ELEMENTS // max(length, 1))
        self.block: Slot = layout.slot(work, (self.count, length))
        self.mean: Slot = layout.slot(work, (self.count, 1))
        self.deviation: Slot = layout.slot(work, (self.count, 1))

    def normalize(
        self,
        x: Array,
        out: Array,
        scratch: Array | None,
        statistics: Operands = (),
        *,
        center: bool,
    ) -> None:
        """Write (x - mean) / sqrt(variance + epsilon) of each row; x and out may be one.

        Args:
            x: Array of (rows, length).
            out: Array of (rows, length).
            scratch: Scratch of the kernel.
            statistics: Arrays for the means and the inverse deviations, (rows, 1) each.
            center: Whether to subtract the mean; if not, the variance is the mean square.
        """
        for start in range(0, x.shape[0], self.count):
            rows = slice(start, min(start + self.count, x.shape[0]))
            count = rows.stop - start
            block = self.block.of(scratch)[:count]
            mean, deviation = self.mean.of(scratch)[:count], self.deviation.of(scratch)[:count]
            np.copyto(block, x[rows])
            if center:
                np.add.reduce(block, axis=1, out=mean, keepdims=True)
                np.divide(mean, self.length, out=mean)
                np.subtract(block, mean, out=block)
            np.einsum("ij,ij->i", block, block, out=deviation[:, 0])
            np.divide(deviation, self.length, out=deviation)
            np.add(deviation, self.epsilon, out=deviation)
            np.sqrt(deviation, out=deviation)
            np.reciprocal(deviation, out=deviation)
            np.multiply(block, deviation, out=out[rows], casting="unsafe")
            for statistic, source in zip(statistics, (mean, deviation), strict=False):
                if statistic is not None:
                    np.copyto(statistic.reshape(-1, 1)[rows], source, casting="unsafe")


def _scale(out: Array, scale: Array | None, bias: Array | None) -> None:
    if scale is not None:
        np.multiply(out, scale, out=out, casting="unsafe")
    if bias is not None:
        np.add(out, bias, out=out, casting="unsafe")


def _over_trailing(context: KernelContext, *, center: bool) -> Kernel:
    shape = context.shape(0)
    require(context.output_dtype() == context.dtype(0))
    axis = axis_of(context.integer("axis", -1), len(shape))
    rows = (element_count(shape[:axis]), element_count(shape[axis:]))
    layout = ScratchLayout()
    normalizer = Rows(context, rows[1], layout)

    def run(inputs: Operands, outputs: Operands, scratch: Array | None) -> None:
        x, out = inputs[0].reshape(rows), outputs[0]
        normalizer.normalize(x, out.reshape(rows), scratch, outputs[1:], center=center)
        _scale(out, inputs[1], inputs[2] if len(inputs) > 2 else None)

    return Kernel(context.node.operator, run, layout.size_bytes, context.read_once(0))


def layer(context: KernelContext) -> Kernel:
    return _over_trailing(context, center=True)


def root_mean_square(context: KernelContext) -> Kernel:
    return _over_trailing(context, center=False)


def instance(context: KernelContext) -> Kernel:
    batch, channels, *spatial = context.shape(0)
    rows = (batch * channels, element_count(spatial))
    per_channel = (channels,) + (1,) * len(spatial)
    layout = ScratchLayout()
    normalizer = Rows(context, rows[1], layout)

    def run(inputs: Operands, outputs: Operands, scratch: Array | None) -> None:
        (x, scale, bias), (out,) = inputs, outputs
        normalizer.normalize(x.reshape(rows), out.reshape(rows), scratch, center=True)
        _scale(out, scale.reshape(per_channel), bias.reshape(per_channel))

    return Kernel("InstanceNormalization", run, layout.size_bytes, context.read_once(0))


def group(context: KernelContext) -> Kernel:
    """Scale and bias are one for each group before opset 21, for each channel since."""
    batch, channels, *spatial = context.shape(0)
    groups = context.integer("num_groups", 1)
    inner = channels // groups * element_count(spatial)
    grouped = (batch, groups, channels // groups, element_count(spatial))
    parameter = (groups, 1, 1) if context.version < 21 else (groups, channels // groups, 1)
    layout = ScratchLayout()
    normalizer = Rows(context, inner, layout)

    def run(inputs: Operands, outputs: Operands, scratch: Array | None) -> None:
        (x, scale, bias), (out,) = inputs, outputs
        rows = (batch * groups, inner)
        normalizer.normalize(x.reshape(rows), out.reshape(rows), scratch, center=True)
        _scale(out.reshape(grouped), scale.reshape(parameter), bias.reshape(parameter))

    return Kernel("GroupNormalization", run, layout.size_bytes, context.read_once(0))


def batch_normalization(context: KernelContext) -> Kernel:
    """Normalize at inference, by a given mean and variance for each channel."""
    shape = context.shape(0)
    require(is_real(context.dtype(0)) and len(shape) >= 2)
    require(not context.integer("training_mode", 0) and bool(context.integer("spatial", 1)))
    require(context.version >= 7 or bool(context.integer("is_test", 0)))
    require(not any(context.has_output(index) for index in range(1, len(context.outputs))))
    per_channel = (shape[1],) + (1,) * (len(shape) - 2)
    epsilon = context.number("epsilon", 1e-5)
    layout = ScratchLayout()
    work = np.result_type(context.dtype(0), np.float32)
    factor = layout.slot(work, per_channel)

    def run(inputs: Operands, outputs: Operands, scratch: Array | None) -> None:
        x, out = inputs[0], outputs[0]
        scale, bias, mean, variance = (p.reshape(per_channel) for p in inputs[1:])
        factors = factor.of(scratch)
        np.add(variance, epsilon, out=factors)
        np.sqrt(factors, out=factors)
        np.divide(scale, factors, out=factors)
        np.subtract(x, mean, out=out, casting="unsafe")
        np.multiply(out, factors, out=out, casting="unsafe")
        np.add(out, bias, out=out, casting="unsafe")

    return Kernel("BatchNormalization", run, layout.size_bytes, context.read_once(0))


def local_response(context: KernelContext) -> Kernel:
    """Compute x / (bias + alpha / size * sum of squares over a window of channels) ** beta."""
    shape, dtype = context.shape(0), context.dtype(0)
    require(is_real(dtype) and len(shape) >= 2)
    size = context.integer("size", 1)
    alpha, beta = context.number("alpha", 1e-4), context.number("beta", 0.75)
    bias = context.number("bias", 1.0)
    channels = shape[1]
    layout = ScratchLayout()
    square, total = layout.slot(dtype, shape), layout.slot(dtype, shape)

    def run(inputs: Operands, outputs: Operands, scratch: Array | None) -> None:
        x, squares, sums = inputs[0], square.of(scratch), total.of(scratch)
        np.square(x, out=squares)
        sums.fill(0)
        for shift in range(-((size - 1) // 2), size // 2 + 1):
            into = slice(max(-shift, 0), max(min(channels - shift, channels), 0))
            source = slice(into.start + shift, into.stop + shift)
            if into.stop > into.start:
                np.add(sums[:, into], squares[:, source], out=sums[:, into])
        np.multiply(sums, alpha / size, out=sums)
        np.add(sums, bias, out=sums)
        np.power(sums, beta, out=sums)
        np.divide(x, sums, out=outputs[0])

    return Kernel("LRN", run, layout.size_bytes, context.same_type(0))


def lp(context: KernelContext) -> Kernel:
    """Compute x / norm along an axis; 0 where the norm is 0."""
    shape, dtype = context.shape(0), context.dtype(0)
    order = context.integer("p", 2)
    require(is_real(dtype) and order in (1, 2))
    axis = axis_of(context.integer("axis", -1), len(shape))
    kept = (*shape[:axis], 1, *shape[axis + 1 :])
    layout = ScratchLayout()
    term, norm = layout.slot(dtype, shape), layout.slot(dtype, kept)
    is_zero = layout.slot(np.bool_, kept)

    def run(inputs: Operands, outputs: Operands, scratch: Array | None) -> None:
        x, terms, norms, zero = inputs[0], term.of(scratch), norm.of(scratch), is_zero.of(scratch)
        (np.absolute if order == 1 else np.square)(x, out=terms)
        np.add.reduce(terms, axis=axis, out=norms, keepdims=True)
        if order == 2:
            np.sqrt(norms, out=norms)
        np.equal(norms, 0, out=zero)
        np.copyto(norms, 1, where=zero)
        np.divide(x, norms, out=outputs[0])

    return Kernel("LpNormalization", run, layout.size_bytes, context.same_type(0))
