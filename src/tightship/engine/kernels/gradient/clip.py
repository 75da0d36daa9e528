"""Norm of all gradients together, and the factor that clips them."""

import math

import numpy as np

from tightship.engine.kernels.blocks import BLOCK_ELEMENTS
from tightship.engine.kernels.kernel import Array, Kernel, Operands
from tightship.engine.kernels.kernel_context import KernelContext, require
from tightship.engine.kernels.numbers import is_real
from tightship.engine.kernels.scratch import ScratchLayout
from tightship.errors import InputError

LEAST_NORM = 1e-6
"""Number added to a norm to avoid division by zero."""


def squares(context: KernelContext) -> Kernel:
    """Sum squares in float64, a block at a time."""
    require(is_real(context.dtype(0)))
    has_total = context.has_input(1)
    layout = ScratchLayout()
    slot = layout.slot(np.float64, (BLOCK_ELEMENTS,))

    def run(inputs: Operands, outputs: Operands, scratch: Array | None) -> None:
        gradient, room = inputs[0].reshape(-1), slot.of(scratch)
        total = float(inputs[1]) if has_total else 0.0
        for start in range(0, gradient.size, BLOCK_ELEMENTS):
            part = gradient[start : start + BLOCK_ELEMENTS]
            wide = room[: part.size]
            np.copyto(wide, part)
            np.multiply(wide, wide, out=wide)
            total += float(np.add.reduce(wide))
        outputs[0][...] = total

    return Kernel(context.node.operator, run, layout.size_bytes)


def clip_scale(context: KernelContext) -> Kernel:
    """Compute the factor of `torch.nn.utils.clip_grad_norm_`; norms that are not finite raise."""
    limit, name = context.number("limit", math.inf), context.node.name

    def run(inputs: Operands, outputs: Operands, _: Array | None) -> None:
        norm = math.sqrt(float(inputs[0]))
        if not math.isfinite(norm):
            found = "not a number" if math.isnan(norm) else "infinite"
            raise InputError(
                f"Node `{name}` has gradients whose norm is {found}; it must be finite. No weight "
                "was changed."
            )
        outputs[0][...] = min(limit / (norm + LEAST_NORM), 1.0)
        if len(outputs) > 1:
            outputs[1][...] = norm

    return Kernel(context.node.operator, run)
