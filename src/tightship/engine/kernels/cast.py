"""Conversions between element types."""

import numpy as np

from tightship.engine.kernels.blocks import BLOCK_ELEMENTS, blocks
from tightship.engine.kernels.kernel import Array, Kernel, Operands
from tightship.engine.kernels.kernel_context import KernelContext, require
from tightship.engine.kernels.numbers import finite_range, is_narrow_float, is_real
from tightship.engine.kernels.scratch import ScratchLayout
from tightship.graph import element_count

SCALES = "float8_e8m0fnu"
"""Unsigned powers of two, which have rounding rules of their own."""


def cast_kernel(context: KernelContext) -> Kernel:
    """Convert to integers by truncation, to bool by `x != 0`, to float8 saturated if asked for."""
    source, target = context.dtype(0), context.output_dtype()
    require(source.kind != "c" and target.kind != "c" and target.name != SCALES)
    if is_narrow_float(target) and context.integer("saturate", 1) and source != target:
        return _saturating(context)

    def run(inputs: Operands, outputs: Operands, _: Array | None) -> None:
        np.copyto(outputs[0], inputs[0], casting="unsafe")

    return Kernel("Cast", run, in_place=context.same_type(0))


def _saturating(context: KernelContext) -> Kernel:
    source, target = context.dtype(0), context.output_dtype()
    require(is_real(source))
    low, high = finite_range(target)
    shape = context.shape(0)
    layout = ScratchLayout()
    work = layout.slot(source, (min(BLOCK_ELEMENTS, element_count(shape)),))

    def run(inputs: Operands, outputs: Operands, scratch: Array | None) -> None:
        for index in blocks(shape):
            part = inputs[0][index]
            limited = work.of(scratch)[: part.size].reshape(part.shape)
            np.clip(part, low, high, out=limited)
            np.copyto(outputs[0][index], limited, casting="unsafe")

    return Kernel("Cast", run, layout.size_bytes)


def bit_cast(context: KernelContext) -> Kernel:
    """Reinterpret the bytes as another type."""
    source, target = context.dtype(0), context.output_dtype()
    require(source.itemsize == target.itemsize)

    def run(inputs: Operands, outputs: Operands, _: Array | None) -> None:
        np.copyto(outputs[0].view(source), inputs[0])

    return Kernel("BitCast", run, in_place=((0, 0),))
