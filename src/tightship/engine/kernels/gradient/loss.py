"""Gradients of losses of labels: each target's weight, at its own class."""

import numpy as np

from tightship.engine.kernels.blocks import BLOCK_ELEMENTS
from tightship.engine.kernels.kernel import Array, Kernel, Operands
from tightship.engine.kernels.kernel_context import KernelContext, require
from tightship.engine.kernels.numbers import is_real
from tightship.engine.kernels.scratch import ScratchLayout
from tightship.graph import element_count


class _Weights:
    """Weight of each target in the loss, times the gradient of the loss."""

    def __init__(self, context: KernelContext, labels: int, layout: ScratchLayout) -> None:
        self.labels = labels
        self.reduction = context.text("reduction", "mean")
        is_ignoring = "ignore_index" in context.node.attributes
        self.ignored = context.integer("ignore_index", 0) if is_ignoring else None
        self.shape = context.shape(labels)
        self.slot = layout.slot(context.output_dtype(), self.shape)
        self.mask = layout.slot(np.bool_, self.shape if self.ignored is not None else (0,))

    def of(self, inputs: Operands, scratch: Array | None) -> Array:
        """Compute the weight of each target."""
        dy, labels, weigh = inputs[0], inputs[self.labels], self.slot.of(scratch)
        given = inputs[self.labels + 1] if len(inputs) > self.labels + 1 else None
        weigh.fill(1)
        if given is not None:
            flat, found = labels.reshape(-1), weigh.reshape(-1)
            for start in range(0, flat.size, BLOCK_ELEMENTS):
                part = slice(start, start + BLOCK_ELEMENTS)
                np.take(given, flat[part], out=found[part], mode="clip")
        if self.ignored is not None:
            mask = self.mask.of(scratch)
            np.equal(labels, self.ignored, out=mask)
            np.copyto(weigh, 0, where=mask)
        if self.reduction == "mean":
            total = np.add.reduce(weigh, axis=None, dtype=np.float64)
            np.divide(weigh, total, out=weigh, casting="unsafe")
        np.multiply(weigh, dy, out=weigh)
        if self.ignored is not None:
            np.copyto(weigh, 0, where=mask)
        return weigh


def _subtract_at_labels(dx: Array, labels: Array, weigh: Array) -> None:
    """Subtract each target's weight at its class; dx is (batch, classes, pixels)."""
    for index in range(dx.shape[0]):
        for start in range(0, labels.shape[1], BLOCK_ELEMENTS):
            part = slice(start, start + BLOCK_ELEMENTS)
            pixels = np.flatnonzero(weigh[index, part]) + start
            dx[index, labels[index, pixels], pixels] -= weigh[index, pixels]


def cross_entropy(context: KernelContext) -> Kernel:
    """Compute (softmax - one hot) times the weight of the target."""
    dtype, shape = context.output_dtype(), context.output_shape()
    require(is_real(dtype))
    layout = ScratchLayout()
    weights = _Weights(context, 2, layout)
    flat = (shape[0], shape[1], element_count(shape[2:]))

    def run(inputs: Operands, outputs: Operands, scratch: Array | None) -> None:
        weigh = weights.of(inputs, scratch).reshape((flat[0], flat[2]))
        dx = outputs[0].reshape(flat)
        np.exp(inputs[1].reshape(flat), out=dx)
        np.multiply(dx, weigh[:, None], out=dx)
        _subtract_at_labels(dx, inputs[2].reshape((flat[0], flat[2])), weigh)

    return Kernel(context.node.operator, run, layout.size_bytes, context.same_type(1))


def likelihood(context: KernelContext) -> Kernel:
    """Write minus the weight of the target at its class, zero elsewhere."""
    shape = context.output_shape()
    require(is_real(context.output_dtype()))
    layout = ScratchLayout()
    weights = _Weights(context, 1, layout)
    flat = (shape[0], shape[1], element_count(shape[2:]))

    def run(inputs: Operands, outputs: Operands, scratch: Array | None) -> None:
        weigh = weights.of(inputs, scratch).reshape((flat[0], flat[2]))
        dx = outputs[0].reshape(flat)
        dx.fill(0)
        _subtract_at_labels(dx, inputs[1].reshape((flat[0], flat[2])), weigh)

    return Kernel(context.node.operator, run, layout.size_bytes)
